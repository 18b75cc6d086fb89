"""Other processors, tried without having them: `make test-elsewhere`."""
