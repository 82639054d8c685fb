"""The claim bf16-stall: what it says, and its experiment."""
