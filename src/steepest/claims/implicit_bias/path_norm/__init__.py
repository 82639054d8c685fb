"""The claim path-norm."""
