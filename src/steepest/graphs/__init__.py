"""Graphs: small ones as data, colour refinement, walks."""
