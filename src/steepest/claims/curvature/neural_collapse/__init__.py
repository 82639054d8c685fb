"""The claim neural-collapse: on networks of ours, and on a reader's own."""
