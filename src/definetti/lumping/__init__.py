"""Small models as Markov chains on listed states: transition matrices, quotients by symmetry, mixing times."""
