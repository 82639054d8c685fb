"""The claim ripples-hold-descent: what it says, and its experiments."""
