"""The claim nuclear-norm."""
