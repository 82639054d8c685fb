"""The claim sawtooth: what it says, and its experiment at one point."""
