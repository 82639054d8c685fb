"""The claim lipschitz-extension: what it says, and its experiment."""
