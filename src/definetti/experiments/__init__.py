"""The paper's experiments (Niepert, "Symmetry-Aware Marginal Density Estimation", AAAI 2013), figure by figure.

`figures/` has one file per figure, which reads like its caption: which model, which curves, which claims. What they
share is here: models, truths, curves, drawing, verdicts, the page, and the loop that runs and resumes them.
"""
