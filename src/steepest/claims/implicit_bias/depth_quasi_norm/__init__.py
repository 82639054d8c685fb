"""The claim depth-quasi-norm."""
