"""The claim two-speed-circle: what it says, and its experiments."""
