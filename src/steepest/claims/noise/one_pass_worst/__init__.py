"""The claim one-pass-worst: what it says, and its experiment."""
