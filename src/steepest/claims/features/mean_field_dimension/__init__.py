"""The claim mean-field-dimension: what it says, and its experiment."""
