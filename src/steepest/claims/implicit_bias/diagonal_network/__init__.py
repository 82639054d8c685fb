"""The claim diagonal-network: what it says, and its experiment at one point."""
