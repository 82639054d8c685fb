"""The claim quadratic-model: what it says, and its experiment at one point."""
