"""The claim update-size: what it says, and its experiment."""
