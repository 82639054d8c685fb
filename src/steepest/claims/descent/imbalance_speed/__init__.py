"""The claim imbalance-speed: what it says."""
