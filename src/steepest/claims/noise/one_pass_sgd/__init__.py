"""The claim one-pass-sgd: what it says, and a minimizer as its changed world."""
