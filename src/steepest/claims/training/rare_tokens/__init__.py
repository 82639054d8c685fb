"""The claim rare-tokens: what it says, its experiment and its theory."""
