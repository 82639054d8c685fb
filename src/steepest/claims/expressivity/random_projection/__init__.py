"""The claim random-projection: what it says, and its experiment."""
