"""The claim size-independent-bound: what it says, its theory and its experiment."""
