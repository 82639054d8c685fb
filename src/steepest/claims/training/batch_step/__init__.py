"""The claim batch-step: what it says, its experiment and its theory."""
