"""The claim residual-stream: what it says, and its experiment."""
