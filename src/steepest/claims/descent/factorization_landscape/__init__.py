"""The claim factorization-landscape: what it says, and its experiments."""
