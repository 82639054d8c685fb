"""The claim worst-error: what it says, its theory and its experiment."""
