"""The claim matrix-completion: what it says, and its experiment."""
