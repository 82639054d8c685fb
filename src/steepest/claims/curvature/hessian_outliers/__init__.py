"""The claim hessian-outliers: what it says, its experiment and its figure."""
