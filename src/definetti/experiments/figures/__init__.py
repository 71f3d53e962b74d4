"""One file per figure. Each has CAPTION, SECONDS, `measure`, `draw` and `judge` (`experiments/figure.py`)."""
