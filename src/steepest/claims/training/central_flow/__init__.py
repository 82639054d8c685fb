"""The claim central-flow: what it says, its experiment and its theory."""
