"""The claim modular-margin: what it says, its experiment and its theory."""
