"""Structured self-attention weights encode semantics (Wu, Nguyen & Ong 2020)."""
