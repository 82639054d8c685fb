"""The claim entropic-force: what it states, and its experiment."""
