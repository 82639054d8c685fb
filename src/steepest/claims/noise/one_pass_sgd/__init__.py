"""The claim one-pass-sgd."""
