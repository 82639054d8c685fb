"""The claim tied-wells: what it says, and its gaps."""
