"""The engine that rebuilds a study: steps, artifacts, claims, and the page."""
