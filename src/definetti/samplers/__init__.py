"""Samplers: frozen values that advance chains, and the runs they are part of."""
