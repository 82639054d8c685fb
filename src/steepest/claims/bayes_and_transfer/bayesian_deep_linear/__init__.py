"""The claim bayesian-deep-linear: what it says, and its experiment at one point."""
