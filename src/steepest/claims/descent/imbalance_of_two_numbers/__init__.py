"""The claim imbalance-of-two-numbers: what it says, and its experiments."""
