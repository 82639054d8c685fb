"""The claim relu-odd-frequencies."""
