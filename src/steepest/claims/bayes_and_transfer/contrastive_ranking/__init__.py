"""The claim contrastive-ranking: what it says, and its experiment."""
