"""The claim critical-batch: what it says, its experiment and its theory."""
