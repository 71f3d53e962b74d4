"""Fixed text that generated kernels begin with. Never imported."""
