# Everything runs in .venv, which `make setup` makes; every other target makes it first where it is missing.
#
# PYTHON chooses the interpreter that .venv is made with; once made, .venv remembers it. Its stamp holds that name and
# the folder, so that another interpreter named by hand, or a copy of this folder, makes .venv anew.

VENV := .venv
STAMP := $(VENV)/.ready
RUN := $(VENV)/bin/python

MADE_WITH := $(shell sed -n 1p $(STAMP) 2>/dev/null)
MADE_IN := $(shell sed -n 2p $(STAMP) 2>/dev/null)
PYTHON ?= $(or $(MADE_WITH),python3)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-sites order console screenshots test gate rest nightly flaky long check docs reference format mutants crash fuzz soak bench dist clean

ifneq ($(MADE_WITH) $(MADE_IN),$(PYTHON) $(CURDIR))
.PHONY: $(STAMP)
endif

help:     ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP)  ## make .venv with all that development needs (PYTHON=python3.12 chooses the interpreter)

DIR :=
STORE := sqlite
demo: setup      ## the main job: files through a queue and Spark, with kills; a minute or two (DIR=FOLDER, STORE=postgresql)
	@mkdir -p build
	@$(RUN) -m demo files $(if $(DIR),"$(DIR)") --store "$(STORE)"

demo-sites: setup ## four sites with a file each and https between them, every program killed once; a minute
	@$(RUN) -m demo sites

order: setup     ## order on a queue, shown by a dozen processes; some seconds, without Spark
	@$(RUN) -m demo order

PORT := 0
console: setup   ## the console on sample data, until Ctrl-C: it prints a link (PORT=9443)
	@$(RUN) -m tools.console --port $(PORT)

screenshots: setup  ## take the pictures of the console in the docs; needs chromium and chromium-driver
	@$(RUN) -m tools.console --screenshots docs/pictures/console

# In the order of the files; a hang ends after five minutes. Hypothesis tries a quarter of its examples.
PYTEST := $(RUN) -m pytest -q -n 2 --dist loadgroup --hypothesis-profile=quick

COVER :=
test: setup      ## the tests of every day: rules, tables, each fact once; five minutes (COVER=yes notes what they reach)
	@$(PYTEST) -m "not gate and not nightly" $(if $(COVER),--cov --cov-report= --cov-fail-under=0)

gate: setup      ## everything that a change must pass: make check, test and rest; 25 minutes
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test COVER=yes
	@$(MAKE) --no-print-directory rest

rest: setup      ## what make test leaves out of the gate: PostgreSQL, kills, Spark, a browser, coverage, site, wheel
	@$(PYTEST) -m "gate and not nightly" --durations=10 --cov --cov-append --cov-report=term
	@$(MAKE) --no-print-directory docs dist
	@echo 'This change needs these shards of `make nightly`, too:' && $(RUN) -m tools.nightly --touched

SHARD :=
nightly: setup   ## all that the gate leaves out, in shards of half an hour at most (SHARD=3/16)
	@$(RUN) -m tools.nightly --shard "$(SHARD)"

TESTS :=
TIMES := 3
flaky: setup     ## the tests of the gate in random order on a busy machine, TIMES=3 (TESTS="tests/aio/test_manager.py")
	@$(RUN) -m tools.flaky --times $(TIMES) $(TESTS)

# A test may take an hour: each has thousands of examples.
LONG := INORDER_LONG=1 $(RUN) -m pytest -q --timeout 3600
long: setup      ## before a release: 10,000 random schedules, histories and interrupts, killed Spark drivers; about two hours
	@$(LONG) -n 2 --dist loadgroup tests/histories/test_schedules.py tests/histories/test_properties.py \
	    tests/histories/test_power_loss.py tests/histories/test_master_property.py tests/histories/test_interrupts.py \
	    tests/rules tests/house/test_examples.py \
	    tests/stores/sqlite/test_damage.py tests/stores/postgresql/test_cuts.py
	@$(LONG) -n 2 tests/histories/test_state_machine.py -k agree
	@$(LONG) -rP tests/spark/kills

check: setup     ## lint, format, types, layers, spelling, imports on every Python here; changes nothing
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-cache
	$(RUN) -m tools.pythons
	$(RUN) -m mypy
	$(RUN) -m codespell_lib

docs: setup      ## build the site into build/docs; a warning is an error
	$(RUN) -m sphinx -q -W --keep-going -n docs build/docs
	@echo 'See build/docs/index.html'

reference: setup ## write the pages of docs/ that are made from the program
	$(RUN) -m tools.reference

format: setup    ## sort the imports and format all code
	$(RUN) -m ruff check --fix-only .
	$(RUN) -m ruff format .

SAMPLE := 120
SEED := 1
mutants: setup   ## break each rule, and SAMPLE=120 (or all) of what else decides, drawn by SEED=1: a table or test must fail
	@$(RUN) -m tools.mutants --sample $(SAMPLE) --seed $(SEED)

KILLS := 3000
SECONDS := 3600
crash: setup     ## kill processes KILLS=3000 times, for SECONDS=3600 at most, and check what they had been promised (STORE=postgresql)
	@$(RUN) -m tools.proof.crash --kills $(KILLS) --seconds $(SECONDS) --store $(STORE)
	@$(RUN) -m tools.proof.working
	@$(RUN) -m tools.proof.limited
	@$(RUN) -m tools.proof.serving

fuzz: setup      ## schemathesis against a running server, as an administrator and as a user with few rights; 20 minutes (ARGS="--examples 20")
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev,fuzz]'
	@$(RUN) -m tools.fuzz $(ARGS)

soak: setup      ## long runs: 100,000 opens, 100,000 wake-ups, an hour of mixed work, shares among many; about two hours (ARGS="fair --json")
	@$(RUN) -m tools.soak $(ARGS)

bench: setup     ## the benchmarks beside the peers, into build/bench, README.md and docs; about half an hour (ARGS="limit", ARGS="put_one --quick")
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark]' --requirement benchmarks/peers.txt
	@mkdir -p build/bench
	@$(RUN) -m benchmarks --json build/bench/report.json --report build/bench/report.md --pages $(ARGS)
	@echo 'See build/bench/report.md'

dist: setup      ## build wheel and sdist into dist, and try the wheel in an environment of its own
	@$(RUN) tools/dist.py dist

clean:           ## remove .venv and everything else that was made
	rm -rf $(VENV) .venv-* build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests tools benchmarks demo inorder_scenarios -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	    echo 'inorder needs Python 3.10 or newer, and "$(PYTHON)" was not found.' >&2; \
	    echo 'Install it (apt install python3 python3-venv) or name another: make setup PYTHON=python3.12' >&2; \
	    exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	    echo "inorder needs Python 3.10 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	    echo 'Name another: make setup PYTHON=python3.12' >&2; exit 1; }
	@test '$(MADE_WITH) $(MADE_IN)' = '$(PYTHON) $(CURDIR)' || rm -rf $(VENV)
	@echo 'Making $(VENV) with $(PYTHON); the first time it loads some hundred megabytes ...'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'Is venv installed? apt install python3-venv' >&2; exit 1; }
	@$(RUN) -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[dev,docs,spark]'
	@printf '%s\n' '$(PYTHON)' '$(CURDIR)' > $@
