"""The claim xor-sample-complexity: what it says, and its experiments."""
