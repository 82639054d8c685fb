"""The claim finite-class-erm: what it says, its theory and its experiment."""
