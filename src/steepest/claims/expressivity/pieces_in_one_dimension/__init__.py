"""The claim pieces-in-one-dimension: what it says, and its experiment at one point."""
