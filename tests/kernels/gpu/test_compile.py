"""The kernels compile for GPUs of several generations. What the interpreter runs, the compiler may refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


DENSE = {"_vector", "_tiles", "_dequantise", "_embed", "_rope_and_store", "_attend", "_combine"}
KERNELS = {
    "compile_dense.py": DENSE | {"_collect", "_normalise", "_route"},
    "compile_experts.py": {"gate_up", "down", "_gate_up", "_down"},
}


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])  # what 89 has of them, both have
@pytest.mark.parametrize("script", KERNELS)
def test_kernels_compile(script, capability, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(Path(__file__).with_name(script)), str(capability)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == KERNELS[script]
