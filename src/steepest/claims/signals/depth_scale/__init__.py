"""The claim depth-scale: what it says, and its experiment at one point."""
