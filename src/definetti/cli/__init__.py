"""The command line: one file per command, the options they share in `options.py`, what they print in `output.py`."""
