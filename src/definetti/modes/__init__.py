"""The modes of a model: regions of states that single-site chains do not leave, and how much each weighs."""
