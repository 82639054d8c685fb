"""The claim representer."""
