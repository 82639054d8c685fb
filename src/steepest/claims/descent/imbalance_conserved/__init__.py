"""The claim imbalance-conserved: what it says."""
