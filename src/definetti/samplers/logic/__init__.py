"""Samplers of Markov logic networks: chains of bit tensors."""
