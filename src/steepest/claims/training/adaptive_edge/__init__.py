"""The claim adaptive-edge: what it says, its experiment and its theory."""
