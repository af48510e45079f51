"""Triton kernels for the GPU. Modules here import torch and Triton: import them only where both are there."""
