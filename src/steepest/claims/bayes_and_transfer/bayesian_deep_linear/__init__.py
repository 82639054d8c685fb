"""The claim bayesian-deep-linear: what it says, its theory, its two samplers, its experiment and its point."""
