"""The claim short-filters."""
