"""The claim normalized-network: what it says, and its experiments."""
