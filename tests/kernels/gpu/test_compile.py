"""The kernels compile for GPUs of several generations. What the interpreter runs, the compiler may refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 89, 90])
def test_dense_kernels_compile(capability, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    script = Path(__file__).with_name("compile_dense.py")
    command = [sys.executable, str(script), str(capability)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    wanted = {"_vector", "_tiles", "_dequantise", "_embed", "_rope_and_store", "_attend", "_combine"}
    assert set(done.stdout.split()) == wanted | {"_collect", "_normalise", "_route"}
