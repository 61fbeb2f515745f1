# Everything runs in .venv, made from a lock file. `make demo` and `make test` set it up by themselves.
PYTHON ?= python3
# Extra words for pip, e.g. PIP_OPTIONS="--extra-index-url https://download.pytorch.org/whl/cpu" for torch without CUDA.
PIP_OPTIONS ?=
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup develop demo test check bench bench-peers docs format clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.made: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unrolled needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 demo")'
	@echo "Making $(VENV): torch and the rest are fetched, some minutes and about 1.5 GiB of disk."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q $(PIP_OPTIONS) -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.made-develop: requirements-dev.lock $(VENV)/.made
	$(BIN)/python -m pip install -q $(PIP_OPTIONS) -r requirements-dev.lock
	@touch $@

setup: $(VENV)/.made  ## the environment to train and predict, in .venv
develop: $(VENV)/.made-develop  ## the same with the tools for tests and checks

demo: setup  ## train, score and explain a small translator (about three minutes)
	$(BIN)/unrolled demo

test: develop  ## all tests; no network, no data beside the checkout needed
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: develop  ## lint, format, types, architecture, reference pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(BIN)/python docs/build.py --check

bench: develop  ## ratios of speed and memory, each in one run
	$(BIN)/python -m benchmarks

DATA ?= shared/data/multi30k_en-de
bench-peers: develop  ## the same beside joeynmt, yoyodyne, eole and Keras, each in its own environment (PyPI)
	$(BIN)/python -m benchmarks.peers --make --pip "$(PIP_OPTIONS)" --data $(DATA)

docs: develop  ## the reference pages, made from the registries
	$(BIN)/python docs/build.py

format: develop  ## put the code in the project's format
	$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache build *.egg-info src/*.egg-info
