"""Where the kernels of the tests run, and how much is tried there."""

from __future__ import annotations

import torch

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
EXAMPLES = 8 if ON_GPU else 25  # of random shapes: on a GPU nearly each is compiled anew
