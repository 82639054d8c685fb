"""The claim printed-remedy: what it says."""
