"""The claim imbalance-conserved: what it says, and its experiments."""
