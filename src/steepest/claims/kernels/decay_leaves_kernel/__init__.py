"""The claim decay-leaves-kernel."""
