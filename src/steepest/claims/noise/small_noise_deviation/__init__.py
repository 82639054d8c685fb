"""The claim small-noise-deviation: what it says, and its experiment."""
