"""The claim narrow-networks: what it says, and its experiments."""
