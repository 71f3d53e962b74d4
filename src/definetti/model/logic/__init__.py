"""`MarkovLogic`: sorts, predicates, weighted formulas, evidence; never grounded to sample it."""
