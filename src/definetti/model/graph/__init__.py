"""`FactorGraph`: any discrete model, ground."""
