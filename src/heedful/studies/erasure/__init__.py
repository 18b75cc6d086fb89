"""Is attention interpretable? Erasing attention weights (Serrano & Smith 2019)."""
