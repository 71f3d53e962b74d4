"""The text of sparse kernels."""
