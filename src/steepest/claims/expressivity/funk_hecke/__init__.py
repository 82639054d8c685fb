"""The claim funk-hecke."""
