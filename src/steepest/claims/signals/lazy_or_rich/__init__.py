"""The claim lazy-or-rich: what it says, and its version for a reader's own network."""
