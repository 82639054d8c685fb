"""The claim scaling-rules: what it says, its experiment and its theory."""
