"""The claim alignment-time."""
