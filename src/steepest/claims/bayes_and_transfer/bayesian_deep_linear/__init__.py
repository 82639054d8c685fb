"""The claim bayesian-deep-linear: what it says, its theory, its sampler, its experiment and its point."""
