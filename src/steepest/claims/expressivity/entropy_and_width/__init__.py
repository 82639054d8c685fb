"""The claim entropy-and-width: what it says, and its experiment."""
