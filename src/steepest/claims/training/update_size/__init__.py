"""The claim update-size: what it says, its experiment and its theory."""
