"""The claim annealing-near-convex: what it says, and its experiments."""
