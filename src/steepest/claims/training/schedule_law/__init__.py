"""The claim schedule-law: what it says, its experiment and its theory."""
