"""The claim annealing-near-convex: what it says, its theory and its point."""
