"""The claim vanishing-steps: what it says, and its experiment."""
