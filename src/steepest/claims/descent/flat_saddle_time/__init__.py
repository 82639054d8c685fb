"""The claim flat-saddle-time: what it says, and its experiment."""
