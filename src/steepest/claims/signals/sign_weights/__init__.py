"""The claim sign-weights."""
