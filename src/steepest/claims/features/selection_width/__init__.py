"""The claim selection-width: what it says, its theory, its experiment and its figure."""
