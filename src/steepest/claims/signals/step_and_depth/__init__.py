"""The claim step-and-depth: what it says."""
