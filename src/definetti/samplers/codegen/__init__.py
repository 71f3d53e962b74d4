"""From formulas to the source of a kernel, in passes. Nothing from a model file enters the text but integers."""
