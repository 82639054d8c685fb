"""The claim prelu-robustness: what it says, and its experiments."""
