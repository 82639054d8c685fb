"""The claim grokking-clock: what it says, its experiment and its theory."""
