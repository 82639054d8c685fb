"""The claim kac-rice: what it says, and its experiment at one point."""
