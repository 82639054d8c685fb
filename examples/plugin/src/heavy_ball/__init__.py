"""Claims about descent with momentum."""
