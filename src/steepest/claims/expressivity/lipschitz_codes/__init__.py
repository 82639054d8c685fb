"""The claim lipschitz-codes: what it says, and its experiment."""
