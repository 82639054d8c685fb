"""The claim beyond-the-edge: what it says, and its experiment at one point."""
