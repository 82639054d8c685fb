"""The claim xor-features: what it says, and its experiment at one point."""
