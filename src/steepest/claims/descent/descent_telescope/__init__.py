"""The claim descent-telescope."""
