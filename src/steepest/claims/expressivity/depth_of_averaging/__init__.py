"""The claim depth-of-averaging."""
