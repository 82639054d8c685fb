"""The claim hyperplane-cells."""
