"""The claim relu-path-moments."""
