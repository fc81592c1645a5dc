# run · test · check · check-all · docs · bench · chaos · lock · wheel: each makes its own set-up in .venv; image: a container image
SHELL := /bin/bash -o pipefail
PYTHON ?= python3
PORT ?=
BIN := .venv/bin
TESTS ?= tests
TABLES ?=
DOCKER ?= docker
IMAGE ?= espalier
QUICK ?=
ONLY ?=
CHAOS ?=
COMMA := ,
KERNELS := $(foreach header,$(shell find espalier -name '*.pxd'),$(header) $(header:.pxd=.py))

.PHONY: run test check check-all docs bench chaos lock image wheel clean python-is-there

run: .venv/.run .venv/.kernels
	@$(BIN)/espalier up --examples $(if $(PORT),--port $(PORT))

test: .venv/.dev .venv/.kernels
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow" $(TESTS) # many wait: three share two cores

check: .venv/.dev .venv/.kernels
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

check-all: check .venv-lowest/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow
	rm -rf build/checked && mkdir -p build/checked && git ls-files -z | xargs -0 cp --parents --target-directory build/checked
	cd build/checked && ESPALIER_CHECKED=1 ../../$(BIN)/python setup.py --quiet build_ext --inplace && \
	  ESPALIER_REFERENCE=$(abspath $(or $(ESPALIER_REFERENCE),../shared/reference)) PYTHONPATH=. ../../$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(KERNEL_TESTS)
	.venv-lowest/bin/python -W default -m pytest -n 2 --dist loadfile -m "not slow" -W default

# What runs each kernel on small data, against slow twins.
KERNEL_TESTS := $(addprefix tests/core/,growing prediction pruning rules training) --ignore-glob='*published_figures.py'

docs: .venv/.dev .venv/.kernels .venv-docs/.docs
	$(BIN)/python -m tools.reference_pages
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	$(BIN)/python -m pytest tests/documentation/test_site.py

bench: .venv-bench/.bench .venv/.kernels
	.venv-bench/bin/python -m benchmarks $(if $(QUICK),--quick) --only '$(ONLY)' $(subst $(COMMA), ,$(TABLES))

chaos: .venv/.dev .venv/.kernels
	$(BIN)/python -m tests.chaos $(CHAOS)

lock: .venv/.dev
	$(BIN)/pip-compile $(LOCK) --extra service --extra postgres --extra sql --extra dask --extra onnx --extra traces --extra dev -o requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK) --extra service --extra postgres --extra sql --extra dask --extra traces -c requirements-dev.lock -o requirements.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK) --extra service --extra postgres --extra dask --extra bench -c requirements-dev.lock -o requirements-bench.lock pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' | \
	  $(BIN)/pip-compile $(LOCK) -o requirements-docs.lock -
	printf '%s\n' $(EXPORT_JUDGES) | $(BIN)/pip-compile $(LOCK) -o requirements-judges.lock -

# What judges exported PMML and DMN in the tests; never installed beside Espalier: the AGPL and the GPL are their licences.
EXPORT_JUDGES := 'jpmml-evaluator>=0.16' 'jpype1>=1.7' 'pydmnrules>=1.4.5' 'pypmml>=1.5.8'

LOCK := --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

image:
	$(DOCKER) build --tag $(IMAGE) .

clean:
	rm -rf .venv .venv-lowest .venv-bench* .venv-docs .venv-judges site build dist *.egg-info
	find espalier -name '*.so' -delete

# Two --quiet leave only errors.
PIP := --quiet --quiet --disable-pip-version-check
define LIBRARIES
@echo "  installing the $$(grep -c == $(2)) libraries of $(2) ..."
@$(1)/bin/python -m pip install $(PIP) --require-hashes -r $(2)
endef

# Installs the package into an environment, with a line for each kernel that is compiled.
define INSTALL
@mkdir -p build; PYTHONWARNINGS=ignore $(1)/bin/python -m pip install --verbose --disable-pip-version-check --no-deps --editable . \
  2>&1 | tee build/install.log | sed -un 's/^ *\(Compiling kernel .*\)/  \1/p' || { cat build/install.log; exit 1; }
endef

# From nothing: what an earlier build left behind must not be in it.
wheel: | .venv/bin/python
	rm -rf build/lib* build/temp* build/bdist*
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

python-is-there:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Espalier needs Python 3.11 or later: install python3, or name another one: make PYTHON=/path/to/python3 ..."; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || \
	  { echo "This python3 has no C headers, which compiling the kernels needs: on Debian and Ubuntu, run: apt-get install python3-dev"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This python3 has no venv: on Debian and Ubuntu, run: apt-get install python3-venv"; exit 1; }

.venv/bin/python: | python-is-there
	@echo "Setting up .venv, once; it takes about two minutes"
	@echo "  creating a virtual environment with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv .venv

.venv/.run: requirements.lock pyproject.toml | .venv/bin/python
	$(call LIBRARIES,.venv,requirements.lock)
	@touch $@

# Only kernels that have changed are compiled.
.venv/.kernels: $(KERNELS) setup.py tools/kernel_build.py pyproject.toml | .venv/bin/python
	@echo "  installing Espalier itself: kernels that have changed are compiled ..."
	$(call INSTALL,.venv)
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	$(call LIBRARIES,.venv,requirements-dev.lock)
	@touch $@ .venv/.run

.venv-docs/.docs: requirements-docs.lock | python-is-there
	@echo "Setting up .venv-docs, once; it takes half a minute"
	@$(PYTHON) -m venv .venv-docs
	$(call LIBRARIES,.venv-docs,requirements-docs.lock)
	@touch $@

.venv-judges/.judges: requirements-judges.lock | python-is-there
	@echo "Setting up .venv-judges, once; it takes half a minute"
	@$(PYTHON) -m venv .venv-judges
	$(call LIBRARIES,.venv-judges,requirements-judges.lock)
	@touch $@

.venv-bench/.bench: requirements-bench.lock pyproject.toml | python-is-there
	@echo "Setting up .venv-bench with the peers, once; it takes a minute or two"
	@$(PYTHON) -m venv .venv-bench
	$(call LIBRARIES,.venv-bench,requirements-bench.lock)
	$(call INSTALL,.venv-bench)
	@touch $@

.venv-lowest/.dev: pyproject.toml tools/lowest_versions.py | python-is-there
	$(PYTHON) -m venv --clear .venv-lowest
	$(PYTHON) tools/lowest_versions.py > .venv-lowest/requirements.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-lowest/requirements.txt
	$(call INSTALL,.venv-lowest)
	@touch $@
