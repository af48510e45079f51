"""A decode step on CUDA: captured graphs for what is always the same, the host for what the router chose."""
