"""The claim mean-field-limit: what it says, and its experiments."""
