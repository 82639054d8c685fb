"""The claim deep-linear-limits."""
