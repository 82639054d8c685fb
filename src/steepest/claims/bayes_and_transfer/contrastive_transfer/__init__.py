"""The claim contrastive-transfer: what it says, and its experiment at one point."""
