"""Compiled inner loops. One file per engine; helpers such as `rng` are shared: the folder in which compiled code is kept
is named by a hash of all these files (`compiling.py`)."""
