"""Models whose right verdict is known, and the borders of the verdict fitted to them."""
