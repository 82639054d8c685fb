"""The claim edge-of-stability: what it says, and its experiment at one point."""
