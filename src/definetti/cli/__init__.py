"""The command line: a file per command in `commands/`, shared options in `options.py`, what they print in `output`."""
