"""Samplers of factor graphs: chains are lanes of arrays."""
