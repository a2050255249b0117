# make demo    see a cluster being balanced (needs Python 3.11+ only)
# make test    everything CI runs, real Kafka included (needs Java 17+ and Maven too)
# make help    the rest
#
# Nothing is installed outside .venv, and nothing that is not locked in requirements/.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.SUFFIXES:
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
ROOMS := kernels cluster_model goals optimizer metrics_reporter spark trimtab
# May be set: make demo PYTHON=/opt/python3.12/bin/python3. Looked for only while there is no .venv.
ifndef PYTHON
ifeq ($(wildcard $(BIN)/python),)
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
endif
endif
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ITSELF := $(PIP) install --no-deps --no-build-isolation --no-index --editable .
COMPILE := uv pip compile pyproject.toml requirements/build.in --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --no-emit-find-links --quiet

.PHONY: help demo test quick check lint docs types kafka bench coverage mutants lock clean chromium need-python need-java

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.demo-ready ## plan and balance a simulated cluster, write the HTML report (ARGS=… for trimtab demo)
	@mkdir -p out
	@$(BIN)/trimtab demo --out out/demo.html $(ARGS)

test: need-python need-java $(VENV)/.test-ready lint types ## lint, contracts, types and all tests, real Kafka included
	$(BIN)/python -m $(if $(strip $(ARGS)),pytest $(ARGS),tests.parallel)

quick: $(VENV)/.test-ready lint types ## lint, contracts, types and unit tests, in less than 3 minutes: before every commit
	$(BIN)/python -m tests.parallel quick $(ARGS)

check: $(VENV)/.test-ready lint types ## the same without real Kafka: no Java needed
	$(BIN)/python -m pytest --ignore=tests/kafka $(ARGS)

lint: $(VENV)/.test-ready docs ## style, who may import whom, and links of the docs
	$(BIN)/ruff check .
	$(BIN)/lint-imports

docs: $(VENV)/.test-ready ## the docs as a site in out/site; fails where a link leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

types: $(VENV)/.test-ready ## mypy, strict
	$(BIN)/mypy

kafka: need-python need-java $(VENV)/.test-ready ## a real Kafka cluster on this machine to try things on, until Ctrl-C
	@$(BIN)/python -m tests.kafka.cluster $(ARGS)

bench: $(VENV)/.test-ready ## measure the planner
	$(BIN)/python -m benchmarks.planner $(ARGS)

# Kernels count only where they run interpreted. What takes minutes so is left out: smaller tests reach the same lines.
SLOW := --ignore tests/unit/optimizer/test_scenarios.py
coverage: $(VENV)/.test-ready ## lines of the pure rooms that tests reach, at least 95 % (takes long: no compiler)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/unit/cluster_model tests/unit/goals tests/unit/optimizer \
	  $(SLOW) --cov --cov-report=term-missing --durations=10 $(ARGS)

# Kernels are mutated too: uncompiled, their decorators return the function, and without them the tool looks into it.
# ARGS names others: 'goals*' is the whole room, 'optimizer.placement.state*' also what is not scoring.
SCORING := evaluate potential topic_counts commit
mutants: ARGS ?= 'goals.score*' $(SCORING:%='optimizer.placement.%*')
mutants: $(VENV)/.test-ready ## does a test notice when the scoring is changed?
	rm -rf out/mutants && mkdir -p out/mutants
	cp -r $(ROOMS) tests examples pyproject.toml out/mutants
	sed -i -E '/^@(kernel|inner|part)(_as\(.*\))?$$/d' out/mutants/goals/*.py out/mutants/optimizer/placement/*.py
	cd out/mutants && NUMBA_DISABLE_JIT=1 $(CURDIR)/$(BIN)/mutmut run $(ARGS)
	cd out/mutants && $(CURDIR)/$(BIN)/mutmut results | grep -v 'not checked' || true

lock: $(VENV)/.test-ready ## renew requirements/*.txt (needs uv)
	$(COMPILE) --upgrade --extra dev --output-file requirements/test.txt
	$(COMPILE) --upgrade --extra plan --constraints requirements/test.txt --output-file requirements/demo.txt
	$(COMPILE) --upgrade --extra service --extra stores --constraints requirements/test.txt --output-file requirements/image.txt

chromium: ## what shows the service's page to its tests, where it is missing (root on Debian)
	@for name in chromium chromium-browser google-chrome chrome; do command -v $$name >/dev/null && exit; done; \
	if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then echo "Installing Chromium" >&2; apt-get update -qq >/dev/null \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null && exit; fi; \
	echo "Chromium is not here and could not be installed, so tests of the page are skipped (Debian: apt install chromium)." >&2

clean: ## remove .venv and everything built
	rm -rf $(VENV) build dist out htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
	  .hypothesis
	find $(ROOMS) tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what must be there before anything is downloaded ----------------------------------------------------------------

need-python:
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { \
	  echo "Python 3.11 or newer is needed and none was found: install it (Debian: apt install python3 python3-venv)," \
	       "or name one with make PYTHON=/path/to/python3." >&2; exit 2; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, $(PYTHON) is older: name another with make PYTHON=/path/to/python3." >&2; exit 2; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian: apt install python3-venv)." >&2; exit 2; }

need-java:
	@java=java; test -z "$$JAVA_HOME" || java="$$JAVA_HOME/bin/java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1); \
	major=$${version%%[^0-9]*}; test "$${major:-0}" -ge 17 || { \
	  echo "Java 17 or newer is needed to run a real Kafka, found $${version:-none}: install it (Debian: apt install" \
	       "openjdk-17-jre-headless) or set JAVA_HOME. Without it, make check runs everything else." >&2; exit 2; }
	@test -n "$$KAFKA_HOME" || command -v mvn >/dev/null || { \
	  echo "Maven is needed to fetch Kafka's jars: install it (Debian: apt install maven) or set KAFKA_HOME to a Kafka that" \
	       "is there already. Without it, make check runs everything else." >&2; exit 2; }

# --- the environment; a stamp is renewed only when its lock or pyproject.toml changed --------------------------------

$(BIN)/python: | need-python
	@echo "Making $(VENV) with $(PYTHON)" >&2
	@"$(PYTHON)" -m venv $(VENV)

# Locks are complete, so nothing is resolved: pip 23 takes a newer release for a dependency with an extra, and refuses it for its hash.
$(VENV)/.demo-ready: requirements/demo.txt pyproject.toml | $(BIN)/python
	@echo "Installing what is locked in $<" >&2
	@$(PIP) install --require-hashes --no-deps --requirement $<
	@$(ITSELF)
	@touch $@

$(VENV)/.test-ready: requirements/test.txt pyproject.toml | $(BIN)/python
	@echo "Installing what is locked in $<" >&2
	@$(PIP) install --require-hashes --no-deps --requirement $<
	@$(ITSELF)
	@$(BIN)/trimtab compile
	@touch $@ $(VENV)/.demo-ready
