"""The claim low-rotation-margin: what it says, and its experiments."""
