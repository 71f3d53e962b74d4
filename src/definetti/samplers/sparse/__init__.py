"""Gibbs sweeps over Markov logic that cost about as much as the true atoms and their neighbourhoods."""
