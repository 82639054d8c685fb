"""The claim free-features: what it says, and its experiment."""
