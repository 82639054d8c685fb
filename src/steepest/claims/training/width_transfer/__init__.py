"""The claim width-transfer: what it says, its experiment and its theory."""
