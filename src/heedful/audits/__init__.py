"""Whether the claim holds: every audit, in the order a reader wants."""
