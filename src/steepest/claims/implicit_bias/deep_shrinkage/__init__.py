"""The claim deep-shrinkage."""
