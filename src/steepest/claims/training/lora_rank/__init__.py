"""The claim lora-rank: what it says, its experiment and its theory."""
