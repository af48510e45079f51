"""Inference for Mixture-of-Experts models that are larger than the GPU. Never imports Qt.

Importing this package, or any module the window needs before a model is loaded (`events`, `params`,
`hardware`, `requirements`, `plan`, `profile`), does not import torch.
"""
