"""Hard formulas of a Markov logic network, without grounding where that is possible."""
