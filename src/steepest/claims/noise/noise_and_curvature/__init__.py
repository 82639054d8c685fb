"""The claim noise-and-curvature."""
