"""The claim teacher-student-width: what it says, and its experiment at one point."""
