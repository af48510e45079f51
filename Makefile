# `make run` and `make test` do all the set-up themselves, in .venv/. On Windows, which has no make:
#   py installer\bootstrap.py run      py installer\bootstrap.py test
# TORCH="…" overrides which torch is installed; PYTHON=… which interpreter makes the environment.
PYTHON ?= python3
export TORCH

.PHONY: run test test-gpu sanitize setup package format clean

run:
	@$(PYTHON) installer/bootstrap.py run

test:
	@$(PYTHON) installer/bootstrap.py test

setup:
	@$(PYTHON) installer/bootstrap.py setup

package:
	@$(PYTHON) installer/bootstrap.py package

# On a GPU server without a network: builds with the tools that are installed there, no window, no Qt.
test-gpu:
	$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --editable .
	$(PYTHON) -m pytest tests/engine tests/kernels -m "not starter"

# The kernels under the address, undefined behaviour and thread sanitizers (GCC, Linux); after `make setup`.
sanitize:
	PYTHON=$(firstword $(wildcard .venv/bin/python) $(PYTHON)) tests/kernels/sanitize.sh

format:
	.venv/bin/ruff format . && .venv/bin/ruff check --fix .

clean:
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
