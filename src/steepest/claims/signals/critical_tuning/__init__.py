"""The claim critical-tuning: what it says and its experiment, and its version for a reader's own network."""
