"""The kernels compile for GPUs of several generations. What the interpreter runs, the compiler may refuse."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


DENSE = {"_vector", "_tiles", "_dequantise", "_embed", "_rope_and_store", "_attend", "_combine"}
KERNELS = {
    "compile_dense.py": DENSE | {"_collect", "_normalise", "_route"},
    "compile_experts.py": {"gate_up", "down", "_gate_up", "_down"},
}


CAPABILITIES = [80, 90]  # what 89 has of them, both have


def run(script, capability, cache):
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(cache)}
    command = [sys.executable, str(Path(__file__).with_name(script)), str(capability)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)


@pytest.fixture(scope="module")
def compiling(tmp_path_factory):
    """Each script for each GPU under way, as many at once as there are processors; the longest first."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            (script, capability): pool.submit(run, script, capability, tmp_path_factory.mktemp("triton"))
            for script in reversed(KERNELS)
            for capability in CAPABILITIES
        }


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("script", KERNELS)
def test_kernels_compile(script, capability, compiling):
    done = compiling[script, capability].result()
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == KERNELS[script]
