"""From a model and a question to `Marginals`: prepare, sample, stop, estimate, assemble."""
