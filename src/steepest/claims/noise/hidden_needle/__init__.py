"""The claim hidden-needle: what it says."""
