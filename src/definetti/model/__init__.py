"""The models: `FactorGraph` (ground) and `MarkovLogic` (never grounded to sample it)."""
