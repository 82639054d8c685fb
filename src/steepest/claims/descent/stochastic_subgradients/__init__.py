"""The claim stochastic-subgradients: what it says, and its experiment."""
