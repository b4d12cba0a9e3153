# Each target makes what it needs; only Python 3.11 or newer has to be there.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PIP = -m pip --quiet --disable-pip-version-check
INSTALL = $(PIP) install --constraint constraints.txt

.PHONY: help demo test test-slow test-compiled fuzz check format bench constraints clean

help:
	@echo "make demo         three rounds over a small web on this machine"
	@echo "make test         the tests, without the slow ones"
	@echo "make test-slow    the slow tests: kills, races, many rounds"
	@echo "make test-compiled   the tests of what is compiled, compiled (needs a C compiler)"
	@echo "make fuzz         ten minutes of random input for every reader"
	@echo "make check        ruff, mypy and the import contracts"
	@echo "make format       let ruff format the code"
	@echo "make bench        measure: against Scrapy, against a bare loop, memory, an idle round"
	@echo "make constraints  refresh constraints.txt to today's releases"
	@echo "make clean        remove environments, caches and build products"

demo: .venv-run/.ready
	.venv-run/bin/python -m tests.web.demo

test: .venv/.ready
	.venv/bin/python -m pytest -q -m "not slow" -n auto --maxprocesses 4 --dist loadfile

test-slow: .venv/.ready
	.venv/bin/python -m pytest -q -m slow

# The sources are out of sight of Python here: what is imported is what was installed.
APART = PYTHONPATH=$(CURDIR)/build/apart PYTHONSAFEPATH=1
COMPILED = $(addprefix tests/crawl/,fetching net politeness robots documents stages test_keys.py test_records.py) \
	tests/lake/test_journal.py tests/cycles/tasks

test-compiled: .venv-compiled/.ready build/apart
	$(APART) .venv-compiled/bin/python -c 'import crawl.fetching.turns as t; assert t.__file__.endswith(".so"), t'
	$(APART) .venv-compiled/bin/python -m pytest -o pythonpath= -q -m "not slow" -n auto --maxprocesses 4 --dist loadfile $(COMPILED)

build/apart:
	mkdir -p $@
	ln -s ../../benchmarks ../../tests $@

fuzz: .venv-fuzz/.ready
	.venv-fuzz/bin/python -m tests.fuzz all --minutes 10

check: .venv/.ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: .venv/.ready
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: .venv-bench/.ready build/apart
	$(APART) .venv-bench/bin/python -m benchmarks

.venv-run/.ready: EXTRAS =
.venv/.ready: EXTRAS = [test,dev]
.venv-fuzz/.ready: EXTRAS = [fuzz]

define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(@D)
endef

.venv-run/.ready .venv/.ready .venv-fuzz/.ready: pyproject.toml constraints.txt
	$(environment)
	$(@D)/bin/python $(INSTALL) --editable '.$(EXTRAS)'
	@touch $@

# What is installed here is compiled, and not editable: made anew when a source changes.
.venv-compiled/.ready: EXTRAS = [test]
.venv-bench/.ready: EXTRAS = [bench]

.venv-compiled/.ready .venv-bench/.ready: setup.py pyproject.toml constraints.txt $(shell git ls-files crawl lake cycles)
	$(environment)
	CRAWL_COMPILE=1 $(@D)/bin/python $(INSTALL) '.$(EXTRAS)'
	@touch $@

# Today's releases of everything the extras reach, in a fresh environment; the head comment is kept.
constraints:
	rm -rf .venv-fresh
	$(PYTHON) -m venv .venv-fresh
	.venv-fresh/bin/python $(PIP) install --editable '.[test,dev,bench,fuzz,notebook]'
	.venv-fresh/bin/python $(PIP) freeze --exclude-editable > .venv-fresh/frozen.txt
	sed '/^[^#]/d' constraints.txt > .venv-fresh/constraints.txt
	LC_ALL=C sort --ignore-case .venv-fresh/frozen.txt >> .venv-fresh/constraints.txt
	mv .venv-fresh/constraints.txt constraints.txt
	rm -rf .venv-fresh

clean:
	rm -rf .venv .venv-run .venv-compiled .venv-bench .venv-fuzz .venv-fresh build dist *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
