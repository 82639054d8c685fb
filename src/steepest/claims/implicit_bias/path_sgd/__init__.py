"""The claim path-sgd."""
