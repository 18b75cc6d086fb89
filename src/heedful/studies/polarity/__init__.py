"""Polarity and attention scores of words, and their gradient flow (Sun & Lu 2020)."""
