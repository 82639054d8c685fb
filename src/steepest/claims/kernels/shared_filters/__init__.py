"""The claim shared-filters: what it says, its experiment and its theory."""
