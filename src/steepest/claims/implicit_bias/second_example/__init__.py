"""The claim second-example: what it says, theory and experiment."""
