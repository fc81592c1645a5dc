# run · test · check · check-all · docs · bench · chaos · lock: each makes its own set-up in .venv; image: a container image
PYTHON ?= python3
PORT ?= 8080
BIN := .venv/bin
TESTS ?= tests
TABLES ?=
DOCKER ?= docker
IMAGE ?= espalier
QUICK ?=
ONLY ?=
CHAOS ?=
COMMA := ,

.PHONY: run test check check-all docs bench chaos lock image clean python-is-there

run: .venv/.run
	@$(BIN)/espalier up --examples --port $(PORT)

test: .venv/.dev
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not slow" $(TESTS) # many wait for processes: three share two cores

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

check-all: check .venv-lowest/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(KERNEL_TESTS)
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(KERNEL_TESTS)
	.venv-lowest/bin/python -W default -m pytest -n 2 --dist loadfile -m "not slow" -W default

# What runs each kernel on small data, against slow twins: interpreted, and with every index checked.
KERNEL_TESTS := $(addprefix tests/core/test_,$(addsuffix .py,growing_twin growing_lanes growing_in_parts growing_hard_shapes \
	growing_as_weka packed_sort scans blocks blocks_of_rows kernels raised_branches \
	pruning pruning_twins reduced_error_as_j48 routing strategies bulk_prediction model_tree model_tree_pruning rules \
	rule_post_pruning theory bad_data shared_work small_work))

docs: .venv/.dev .venv-docs/.docs
	$(BIN)/python -m tools.reference_pages
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	$(BIN)/python -m pytest tests/documentation/test_site.py

bench: .venv-bench/.bench
	.venv-bench/bin/python -m benchmarks $(if $(QUICK),--quick) --only '$(ONLY)' $(subst $(COMMA), ,$(TABLES))

chaos: .venv/.dev
	$(BIN)/python -m tests.chaos $(CHAOS)

lock: .venv/.dev
	$(BIN)/pip-compile $(LOCK) --extra service --extra postgres --extra traces --extra dev -o requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK) --extra service --extra postgres --extra traces -c requirements-dev.lock -o requirements.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK) --extra service --extra postgres --extra bench -c requirements-dev.lock -o requirements-bench.lock pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' | \
	  $(BIN)/pip-compile $(LOCK) -o requirements-docs.lock -

LOCK := --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

image:
	$(DOCKER) build --tag $(IMAGE) .

clean:
	rm -rf .venv .venv-lowest .venv-bench* .venv-docs site build dist *.egg-info

python-is-there:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Espalier needs Python 3.11 or later: install python3, or say which with PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This python3 has no venv: on Debian and Ubuntu, run: apt-get install python3-venv"; exit 1; }

.venv/bin/python: | python-is-there
	@echo "Making .venv (once; a minute or so) ..."
	@$(PYTHON) -m venv .venv

.venv/.run: requirements.lock pyproject.toml | .venv/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@ .venv/.run

.venv-docs/.docs: requirements-docs.lock | python-is-there
	@echo "Making .venv-docs (once; half a minute) ..."
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

.venv-bench/.bench: requirements-bench.lock pyproject.toml | python-is-there
	@echo "Making .venv-bench with the peers (once; a minute or two) ..."
	@$(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@PYTHONWARNINGS=ignore .venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv-lowest/.dev: pyproject.toml tools/lowest_versions.py | python-is-there
	$(PYTHON) -m venv --clear .venv-lowest
	$(PYTHON) tools/lowest_versions.py > .venv-lowest/requirements.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-lowest/requirements.txt
	PYTHONWARNINGS=ignore .venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@
