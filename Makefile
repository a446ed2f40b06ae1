# Each target builds its own .venv from nothing (Python 3.11 or newer, pip) the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SEED ?= 0
OUT ?= runs/quickstart$(if $(filter-out 0,$(SEED)),-$(SEED))

.PHONY: quickstart test test-all faults lint

$(STAMP): pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,gguf,openai,web,miniwob,docker,mcp,bfcl,test]'
	$(BIN)/python -m pip install --quiet --no-deps bfcl-eval==2026.3.23 # its pins would bring the SDKs of many vendors
	touch $@

quickstart: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/manyturn quickstart --seed $(SEED) --out $(OUT)

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not slow'

test-all: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

faults: $(STAMP)
	$(BIN)/python tests/faults/run.py --long --json benchmarks/results/faults.json

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
