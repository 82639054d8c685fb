"""The claim weak-regularization."""
