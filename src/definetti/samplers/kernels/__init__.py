"""Compiled inner loops. One file per engine, with shared helpers such as `rng`.

The folder in which compiled code is kept is named by a hash of all these files (`compiling.py`).
"""
