"""What hard factors and hard formulas imply: possible values, forced values, legal states, minimal clashes."""
