"""The claim in-context-regression: what it says, its experiment and its theory."""
