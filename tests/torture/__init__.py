"""What the instrument must survive: the long versions of tests, with the tables they make."""
