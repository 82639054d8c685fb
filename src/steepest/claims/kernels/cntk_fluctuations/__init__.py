"""The claim cntk-fluctuations: what it says, its experiment and its theory."""
