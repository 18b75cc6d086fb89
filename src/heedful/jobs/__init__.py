"""Whole pieces of work, a module each; what is public of them is importable from `heedful`."""
