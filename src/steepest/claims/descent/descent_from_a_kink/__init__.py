"""The claim descent-from-a-kink."""
