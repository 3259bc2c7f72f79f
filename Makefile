# Every target installs what it needs. A machine needs only python3, and either Pulumi or Go.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Many images set this. Each process of the tests would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
STACK ?= dev
ARGS ?=
FOLDER ?= .sandbox
# Processes of the tests: a number, or one for each core.
WORKERS ?= auto
RACKS ?= 4
NODES ?= 4
GPUS ?= 8
PORT ?= 8000

VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
NEWEST := .venv-newest
SITE := import sysconfig; print(sysconfig.get_path("purelib"))
COMPONENTS := tests/resources tests/provider tests/stacks tests/policies tests/test_examples.py tests/test_testing.py
PYTEST := -m pytest --numprocesses=$(WORKERS) --dist=worksteal --durations=10
TYPED := $(wildcard __main__.py kthena_components policies sandbox conformance toolchain tests bench)
LOCKED := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-header --no-emit-index-url --no-emit-find-links
# Compares files with a published schema, which the package check-jsonschema brings.
SCHEMA := $(VENV)/bin/check-jsonschema --builtin-schema vendor.
# Puts `pulumi` and its plugins on the shell's PATH.
WITH_PULUMI = eval "$$($(RUN) -m toolchain env)"

##@ Run

.PHONY: up
up: venv toolchain ## Deploy the stack STACK (default dev) with the state in .state/; ARGS is passed to pulumi
	@$(RUN) -m toolchain up --stack $(STACK) -- $(ARGS)

.PHONY: preview
preview: venv toolchain ## Preview what `make up` would change
	@$(RUN) -m toolchain preview --stack $(STACK) -- $(ARGS)

.PHONY: destroy
destroy: venv toolchain ## Delete the resources that `make up` created
	@$(RUN) -m toolchain destroy --stack $(STACK) -- $(ARGS)

.PHONY: sandbox
sandbox: venv ## Start a local cluster with fake nodes, RACKS × NODES × GPUS, in FOLDER (default .sandbox)
	@$(RUN) -m sandbox up --folder $(FOLDER) --racks $(RACKS) --nodes $(NODES) --gpus $(GPUS)

.PHONY: sandbox-down
sandbox-down: venv ## Stop the cluster of `make sandbox` and remove FOLDER
	@$(RUN) -m sandbox down --folder $(FOLDER)

##@ Check

.PHONY: test
test: venv toolchain rendering languages ## Run all tests, including those with the real Pulumi, helm, kustomize and promtool; needs no cluster
	@$(WITH_PULUMI); $(RUN) $(PYTEST) $(ARGS)

.PHONY: test-programs
test-programs: venv toolchain rendering languages ## Run only the tests with the real Pulumi, helm, kustomize and promtool
	@$(WITH_PULUMI); $(RUN) $(PYTEST) -m programs $$(grep -rl --include='test_*.py' 'mark\.programs' tests) $(ARGS)

.PHONY: test-fast
test-fast: venv ## Run the tests that do not need Pulumi, helm or kustomize
	@$(RUN) $(PYTEST) -m "not programs" $(ARGS)

.PHONY: test-newest-sdk
test-newest-sdk: $(NEWEST)/.ready ## Run the tests of the components with the newest Pulumi SDK and pulumi-kubernetes that the wheel allows
	@KTHENA_NEWEST_SDK=1 $(NEWEST)/bin/python $(PYTEST) -m "not programs" $(COMPONENTS) $(ARGS)

# On top of $(VENV), whose packages Python finds behind those of $(NEWEST): pip installs only what has a newer release.
$(NEWEST)/.ready: $(READY)
	@echo "installing into $(NEWEST) what has a newer release that pyproject.toml allows" >&2
	@$(RUN) -m venv --without-pip --clear $(NEWEST)
	@$(RUN) -c '$(SITE)' > "$$($(NEWEST)/bin/python -c '$(SITE)')/locked.pth"
	@$(RUN) -m pip --python $(NEWEST)/bin/python install --quiet --no-build-isolation \
	  --upgrade --upgrade-strategy eager --editable '.[cluster,exact,policy,terminal]'
	@$(RUN) -m pip --python $(NEWEST)/bin/python list --format=freeze | grep -i '^pulumi'
	@touch $@

.PHONY: lint
lint: venv ## Check the format, style, types, direction of imports, unused code, spelling and workflows
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy $(TYPED)
	@$(VENV)/bin/lint-imports
	@$(RUN) -m toolchain.unused
	@$(VENV)/bin/codespell --check-hidden * .github .ci .devcontainer
	@$(SCHEMA)github-workflows .github/workflows/* docs/ci/github-actions.yml templates/ci/*
	@$(SCHEMA)github-actions action.yml
	@$(SCHEMA)gitlab-ci docs/ci/gitlab-ci.yml
	@$(SCHEMA)github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*))
	@$(SCHEMA)github-issue-config .github/ISSUE_TEMPLATE/config.yml

.PHONY: conformance
conformance: venv toolchain ## Test against the real Kubernetes, Volcano and Kthena in local clusters; ARGS selects parts
	@$(WITH_PULUMI); $(RUN) -m conformance $(ARGS)

.PHONY: bench
bench: venv toolchain ## Run the benchmarks, compared with a raw Pulumi program
	@$(WITH_PULUMI); $(RUN) -m bench $(ARGS)

.PHONY: site
site: venv ## Build the documentation as a site in .site/html; a broken link is an error
	@$(RUN) -m toolchain.site .site

.PHONY: docs
docs: site ## Show the site at http://127.0.0.1:8000, or at the port PORT
	@echo "http://127.0.0.1:$(PORT)/ shows the documentation until you press Ctrl-C" >&2
	@$(RUN) -m http.server --bind 127.0.0.1 --directory .site/html $(PORT)

##@ Change

.PHONY: format
format: venv ## Format the code and apply safe fixes
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .

.PHONY: goldens
goldens: venv ## Regenerate the golden files
	@$(RUN) -m tests.support.goldens --update

.PHONY: policies-docs
policies-docs: venv ## Regenerate docs/policies.md, kinds.md, backends.md and versions.md
	@$(RUN) -m toolchain.pages.rules > docs/policies.md
	@$(RUN) -m toolchain.pages.kinds > docs/kinds.md
	@$(RUN) -m toolchain.pages.backends > docs/backends.md
	@$(RUN) -m toolchain.pages.versions > docs/versions.md

.PHONY: memory-docs
memory-docs: venv ## Regenerate docs/memory.md and its picture from the published start-ups
	@$(RUN) -m toolchain.pages.memory

.PHONY: pictures
pictures: venv ## Draw the pictures of the documentation
	@$(RUN) -m toolchain.pages.pictures
	@$(RUN) -m toolchain.pages.terminal
	@$(RUN) -m toolchain.pages.figures

.PHONY: house
house: venv ## Draw the packages and their imports in docs/architecture.md
	@$(RUN) -m toolchain.pages.house

.PHONY: language-schema
language-schema: venv ## Regenerate the schema of the components for other languages
	@$(RUN) -m kthena_components.provider.schema > .schema.json
	@mv .schema.json kthena_components/provider/schema.json

.PHONY: engine-tables
engine-tables: venv ## Add new engine releases to the tables of options, variables and metrics, and regenerate docs/engines.md
	@$(RUN) -m toolchain.engine_flags $(ARGS)
	@$(RUN) -m toolchain.engine_flags.variables
	@$(RUN) -m toolchain.engine_flags.libraries
	@$(RUN) -m toolchain.engine_metrics
	@$(RUN) -m toolchain.pages.engines > docs/engines.md

.PHONY: crd-tables
crd-tables: venv ## Read the CRDs of the systems' new releases into their tables of fields
	@$(RUN) -m toolchain.crd_tables $(ARGS)

.PHONY: lock
lock: venv ## Update requirements.lock from requirements.in, with hashes, for Python 3.11 and later
	@$(RUN) -m pip install --quiet uv
	@$(RUN) -m uv pip compile $(LOCKED) requirements.in --output-file requirements.lock
	@echo 'cyclonedx-bom>=7.5,<8' | $(RUN) -m uv pip compile $(LOCKED) - --output-file toolchain/sbom.lock

.PHONY: wheel
wheel: venv ## Build the wheel into dist/
	@$(RUN) -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: release
release: venv toolchain languages ## Build all files of a release into dist/release and publish nothing; TAG checks the versions
	@$(WITH_PULUMI); $(RUN) -m toolchain.release $(if $(TAG),--tag $(TAG))

##@ Set up

.PHONY: venv
venv: $(READY) ## Create .venv with the locked packages

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is required, but this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "installing the locked Python packages into $(VENV), about half a minute" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --no-compile --require-hashes --requirement requirements.lock
	@$(RUN) -m pip install --quiet --no-build-isolation --no-deps --editable .
	@$(RUN) -m compileall -qq -j 0 "$$($(RUN) -c '$(SITE)')" || true # with all cores, where pip takes one
	@$(RUN) -m compileall -q -x kthena_components/templates/ kthena_components # also where the environment forbids Python to write them
	@touch $@

.PHONY: toolchain
toolchain: ## Find Pulumi and its Kubernetes provider, or build them (about 11 minutes, once per machine)
	@$(PYTHON) -m toolchain ensure

.PHONY: rendering
rendering: ## Find helm, kustomize and promtool, which tests use, or build them (6 minutes, once per machine)
	@$(PYTHON) -m toolchain ensure-rendering

.PHONY: languages
languages: ## Find Pulumi's language hosts and SDK generators, which tests use, or build them (6 minutes, once per machine)
	@$(PYTHON) -m toolchain ensure-languages

.PHONY: env
env: venv toolchain ## Print the variables for your shell: eval "$(make -s env)"
	@$(RUN) -m toolchain env --stacks

.PHONY: clean
clean: ## Remove the files that make created, except .state/, which records the deployed resources
	@rm -rf $(VENV) $(NEWEST) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
