"""The claim step-and-width: what it says."""
