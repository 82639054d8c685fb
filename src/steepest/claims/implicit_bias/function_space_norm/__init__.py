"""The claim function-space-norm."""
