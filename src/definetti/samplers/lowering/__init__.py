"""Generated functions straight to LLVM."""
