"""The claim residual-staircases: what it says, theory and experiment."""
