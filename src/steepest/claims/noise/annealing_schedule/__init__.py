"""The claim annealing-schedule."""
