"""Reading checkpoints: files on disk become lazily read, named tensors. Importing this is torch-free."""
