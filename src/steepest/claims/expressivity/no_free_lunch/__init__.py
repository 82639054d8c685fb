"""The claim no-free-lunch."""
