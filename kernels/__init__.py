"""Expert kernels: C++ for the CPU, with plain torch as the reference.

Hugging Face publishes a package of the same name, and transformers looks for it: keep this file free of
imports and of a `__version__`, so that ours is never taken for theirs.
"""
