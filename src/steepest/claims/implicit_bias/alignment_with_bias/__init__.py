"""The claim alignment-with-bias: what it says, theory and experiment."""
