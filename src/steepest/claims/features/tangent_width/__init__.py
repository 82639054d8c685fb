"""The claim tangent-width."""
