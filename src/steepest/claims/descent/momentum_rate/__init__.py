"""The claim momentum-rate: what it says."""
