"""Hard factors of a factor graph."""
