"""The claim saddle-escape: what it says, and its experiments."""
