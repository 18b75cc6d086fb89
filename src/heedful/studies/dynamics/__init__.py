"""How single-head attention learns: which words tell the answer, then where they stand."""
