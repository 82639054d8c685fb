"""The claim barron-rate."""
