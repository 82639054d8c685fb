"""The claim sam-edge: what it says, its experiment and its theory."""
