#!/usr/bin/env bash
# The kernels and their pool under the compilers' sanitizers (GCC, Linux): `make sanitize`. Any finding fails.
#
#   1. tests/kernels/stress.cpp with AddressSanitizer and UndefinedBehaviorSanitizer
#   2. tests/kernels/stress.cpp with ThreadSanitizer
#   3. tests/kernels with an extension built as in 1, without what is about time, other packages, compilers or GPUs
#
# PYTHON is an interpreter with torch and the test tools. CMake, ninja and nanobind are taken from beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(command -v "${PYTHON:-python3}") || { echo "There is no ${PYTHON:-python3}." >&2; exit 1; }
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
PATH=$(dirname "$python"):$PATH
for tool in cmake ninja; do
  command -v "$tool" >/dev/null || { echo "Missing: $tool ($python -m pip install $tool)" >&2; exit 1; }
done
"$python" -c "import torch, nanobind, pytest" || { echo "Install torch, nanobind and pytest for $python." >&2; exit 1; }

build() {  # folder, sanitizers, targets
  cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DPython_EXECUTABLE="$python" -DFIDDLER_STRESS=ON -DFIDDLER_SANITIZE="$2" >"$1.log" 2>&1 ||
    { cat "$1.log" >&2; exit 1; }
  cmake --build "$1" --target "${@:3}"
}

export CXX=${CXX:-g++}
root=build/sanitize
mkdir -p $root
build $root/address address,undefined kernels_stress _native
build $root/thread thread kernels_stress

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
echo "The stress program with address,undefined:"
$root/address/kernels_stress
echo "The stress program with thread:"
$root/thread/kernels_stress

# The tests run in a copy of their own: the checkout may hold, or an installation may lead to, another build.
tree=$PWD/$root/tree
rm -rf "$tree"
mkdir -p "$tree/tests"
cp -r kernels pyproject.toml "$tree/"
cp -r tests/kernels "$tree/tests/"
rm -f "$tree"/kernels/_native*
cp $root/address/_native*.so "$tree/kernels/"
cat >"$tree/sitecustomize.py" <<'END'
"""An editable installation would find the checkout's own modules first."""

import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
END
cd "$tree"
export PYTHONPATH=$tree PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
# Leaks: Python and torch free much at exit or never. The runtime must be loaded before the interpreter, and
# the C++ library with it, so that it finds the exceptions' functions.
export ASAN_OPTIONS=detect_leaks=0:halt_on_error=1
export LD_PRELOAD="$("$CXX" -print-file-name=libasan.so) $("$CXX" -print-file-name=libubsan.so) \
$("$CXX" -print-file-name=libstdc++.so.6)"
"$python" -c "
import kernels._native as native
assert native.__file__.startswith('$tree'), native.__file__
assert '__asan_init' in open(native.__file__, 'rb').read().decode('latin1'), 'built without the sanitizer'"
# Left out: tests of idle time, of other packages and compilers, and of the GPU's kernels (some of these compare
# with the engine, which is not in the copy): they say nothing about memory.
"$python" -m pytest -q -p no:cacheprovider tests/kernels \
  --ignore tests/kernels/gpu --ignore tests/kernels/test_package.py --ignore tests/kernels/test_compilers.py \
  -k "not idle_workers and not does_not_import_torch" "$@"
