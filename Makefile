# Every target installs what it needs: a machine with python3 and either Pulumi or Go is enough.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
STACK ?= dev
ARGS ?=
FOLDER ?= .sandbox
RACKS ?= 4
NODES ?= 4
GPUS ?= 8

VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
TYPED := $(wildcard __main__.py ci/comment.py kthena_components policies sandbox conformance toolchain tests bench)
# A shell in which `pulumi` and its plugins are found.
WITH_PULUMI = eval "$$($(RUN) -m toolchain env)"

##@ Run

.PHONY: up
up: venv toolchain ## Deploy stack STACK (default dev) with state in .state/; more for pulumi in ARGS
	@$(RUN) -m toolchain up --stack $(STACK) -- $(ARGS)

.PHONY: preview
preview: venv toolchain ## Show what `make up` would do
	@$(RUN) -m toolchain preview --stack $(STACK) -- $(ARGS)

.PHONY: destroy
destroy: venv toolchain ## Take down what `make up` deployed
	@$(RUN) -m toolchain destroy --stack $(STACK) -- $(ARGS)

.PHONY: sandbox
sandbox: venv ## Start a real cluster without containers in FOLDER: RACKS × NODES × GPUS, all fake
	@$(RUN) -m sandbox up --folder $(FOLDER) --racks $(RACKS) --nodes $(NODES) --gpus $(GPUS)

.PHONY: sandbox-down
sandbox-down: venv ## End exactly what `make sandbox` started
	@$(RUN) -m sandbox down --folder $(FOLDER)

##@ Judge

.PHONY: test
test: venv toolchain ## Run all tests, the real Pulumi engine included; no cluster needed
	@$(WITH_PULUMI); $(RUN) -m pytest $(ARGS)

.PHONY: test-fast
test-fast: venv ## Run the tests that need no Pulumi engine
	@$(RUN) -m pytest -m "not engine" $(ARGS)

.PHONY: lint
lint: venv ## Check format, style, types and the direction of imports
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy $(TYPED)
	@$(VENV)/bin/lint-imports

.PHONY: conformance
conformance: venv toolchain ## Hold the package against the real programs, in clusters of its own; parts in ARGS
	@$(WITH_PULUMI); $(RUN) -m conformance $(ARGS)

.PHONY: bench
bench: venv toolchain ## Measure the budgets against a raw Pulumi program
	@$(WITH_PULUMI); $(RUN) -m bench $(ARGS)

##@ Change

.PHONY: format
format: venv ## Format the code and apply safe fixes
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .

.PHONY: goldens
goldens: venv ## Write the golden files anew
	@$(RUN) -m tests.support.goldens --update

.PHONY: policies-docs
policies-docs: venv ## Write docs/policies.md and docs/kinds.md anew, from rules and systems
	@$(RUN) -m kthena_components.cli.docs > docs/policies.md
	@$(RUN) -m kthena_components.cli.kinds_page > docs/kinds.md

.PHONY: engine-tables
engine-tables: venv ## Read the engines' new releases into their tables of options, and write docs/engines.md
	@$(RUN) -m toolchain.engine_flags $(ARGS)
	@$(RUN) -m kthena_components.cli.engines_page > docs/engines.md

.PHONY: crd-tables
crd-tables: venv ## Read the CRDs of the systems' new releases into their tables of fields
	@$(RUN) -m toolchain.crd_tables $(ARGS)

.PHONY: lock
lock: venv ## Pin requirements.in in requirements.lock, with hashes and for Python 3.11 and newer
	@$(RUN) -m pip install --quiet uv
	@$(RUN) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	  requirements.in --output-file requirements.lock

.PHONY: wheel
wheel: venv ## Build the wheel into dist/
	@$(RUN) -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

##@ Set up

.PHONY: venv
venv: $(READY) ## Make .venv with the locked packages

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "installing the locked Python packages into $(VENV): about half a minute" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --require-hashes --requirement requirements.lock
	@$(RUN) -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

.PHONY: toolchain
toolchain: ## Find Pulumi and its Kubernetes provider, or build them (minutes, once per machine)
	@$(PYTHON) -m toolchain ensure

.PHONY: env
env: venv toolchain ## Print variables for your shell: eval "$(make -s env)"
	@$(RUN) -m toolchain env

.PHONY: clean
clean: ## Remove what make wrote here; .state/ stays, it knows what is deployed
	@rm -rf $(VENV) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
