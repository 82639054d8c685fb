"""The claim linear-regression-rate: what it says, and its experiments."""
