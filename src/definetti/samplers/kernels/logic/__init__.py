"""The compiled part of relational kernels that does not depend on the model."""
