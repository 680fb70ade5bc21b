# make demo   simulate the cable-driven manipulator and say where the pictures are
# make test   run the test suite          make lint   ruff and pyright
# make docs   build the manual in site/   make bench  measure against peers
# make learn  train a policy that reaches, by stable-baselines3 (downloads PyTorch; TORCH=... names a smaller build of it)
# make gallery   pictures, films and numbers of the gallery
# make wheel  a wheel with compiled kernels in dist/      make clean  remove what these made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
OLD := .venv-pinocchio
PIP := -m pip install --disable-pip-version-check --quiet
DEMO := out/cdm
TARGETS := $(if $(filter x86_64,$(shell uname -m)),x86-64-v3 x86-64-v4,aarch64)
COMPILED := src/lissom/compiled
ARGS ?=
TORCH ?= torch>=2.2

# The tests and `lissom kernels` start processes, which would each compile all sources where none may be kept compiled
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-public test-torch test-aligator lint docs gallery bench learn wheel clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.view
	$(BIN)/lissom simulate examples/robots/cdm.yaml --duration 10 \
		--inputs examples/robots/cdm_tensions.csv --smooth --out $(DEMO) --force

# The tests run in four parts, one after the other: a process that runs all of them takes 1.7 GB. ARGS names other tests
BODIES := $(patsubst %,tests/%/,bodies bridges closed_form contracts control convergence derivatives dynamics forces \
	gradients identities inverse tracing)
PICTURES := $(patsubst %,tests/%/,cli gallery viewing)
FILES := $(patsubst %,tests/%/,house io lie robot)
OTHERS := $(filter-out $(BODIES) $(PICTURES) $(FILES),$(sort $(dir $(wildcard tests/*/test_*.py))))
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --durations 10

test: $(VENV)/.test
	$(if $(ARGS),$(PYTEST) $(ARGS),failed=0; \
		for tests in '$(BODIES)' '$(PICTURES)' '$(FILES)' '$(OTHERS)'; do $(PYTEST) $$tests || failed=1; done; exit $$failed)

# Without the private parts of Warp that lie/warp_private.py uses: what versions of Warp get that were not tested
test-public: $(VENV)/.test
	LISSOM_WARP=public $(BIN)/python -m pytest tests/launch/test_one_state.py tests/dynamics/test_workspaces.py \
		tests/stepping/test_stepper.py tests/statics/test_solve_statics.py tests/simulation/test_simulate.py

# PyTorch is no part of `make test`: its usual wheels bring gigabytes for other devices; TORCH names a smaller one
test-torch: $(VENV)/.test
	$(BIN)/python $(PIP) '$(TORCH)'
	$(BIN)/python -m pytest tests/bridges/test_torch.py

# aligator is on no index of pip: PYTHON names one that has it, lissom and pytest, and nothing is installed there
test-aligator:
	@$(PYTHON) -c 'import lissom, pytest, aligator; aligator.TrajOptProblem' || { \
		echo "$(PYTHON) lacks aligator, lissom or pytest: conda install -c conda-forge aligator, pip install -e . pytest" \
		"there, and name it: make test-aligator PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m pytest tests/bridges/test_aligator.py

lint: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict --quiet
	@echo "wrote site/index.html"

gallery: $(VENV)/.test
	$(BIN)/python docs/gallery/make.py $(ARGS)

bench: $(BENCH)/.made $(OLD)/.made
	@mkdir -p out
	$(BENCH)/bin/python benchmarks/run.py
	$(BENCH)/bin/python benchmarks/timing.py
	$(BENCH)/bin/python benchmarks/edges.py
	$(BENCH)/bin/python benchmarks/batches.py
	$(BENCH)/bin/python benchmarks/batches.py 1000 designs
	$(BENCH)/bin/python benchmarks/batches.py 10000 steps
	$(BENCH)/bin/python benchmarks/cold_start.py
	$(BENCH)/bin/python benchmarks/sweeps.py
	$(BENCH)/bin/python benchmarks/gradients.py
	$(BENCH)/bin/python benchmarks/environments.py
	$(BENCH)/bin/python benchmarks/closed_chains.py
	$(BENCH)/bin/python benchmarks/work_precision.py out/work_precision.png
	$(BENCH)/bin/python benchmarks/studio.py
	$(BENCH)/bin/python benchmarks/surroundings.py
	$(BENCH)/bin/python benchmarks/contacts.py
	PINOCCHIO=$(OLD)/bin/python $(BENCH)/bin/python benchmarks/scaling.py out/scaling.png
	$(BENCH)/bin/python benchmarks/large_robots.py
	$(BENCH)/bin/python benchmarks/nets.py
	$(BENCH)/bin/python benchmarks/forward_dynamics_jacobian.py
	$(BENCH)/bin/python benchmarks/cantilever_drop.py
	$(BENCH)/bin/python benchmarks/single_rods.py
	$(BENCH)/bin/python benchmarks/deformable_bodies.py

learn: $(VENV)/.learning
	$(BIN)/python examples/learning/reach.py out/learning

# Compiled kernels do not stay in the checkout, which has kernels of its own processor.
wheel: $(VENV)/.view
	@rm -rf $(COMPILED)
	for target in $(TARGETS); do \
		$(BIN)/lissom kernels build --target $$target --out $(COMPILED) || exit 1; done
	$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir dist .
	@rm -rf $(COMPILED)

clean:
	rm -rf $(VENV) $(BENCH) $(OLD) $(COMPILED) site out build dist

# One stamp for each set of dependencies; they are installed again when pyproject.toml changes.
$(VENV)/.view: $(VENV)/.made pyproject.toml
	@echo "installing lissom, matplotlib and PyVista into $(VENV)"
	@$(BIN)/python $(PIP) -e '.[view,render]'
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	@echo "installing lissom and its test tools into $(VENV)"
	@$(BIN)/python $(PIP) -e '.[test,view]'
	@touch $@

$(VENV)/.lint: $(VENV)/.made pyproject.toml
	@echo "installing ruff and pyright into $(VENV)"
	@$(BIN)/python $(PIP) -e '.[lint]'
	@touch $@

$(VENV)/.learning: $(VENV)/.made pyproject.toml
	@echo "installing lissom and stable-baselines3 into $(VENV)"
	@$(BIN)/python $(PIP) -e '.[learning,view]' '$(TORCH)'
	@touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	@echo "installing mkdocs into $(VENV)"
	@$(BIN)/python $(PIP) -e '.[docs]'
	@touch $@

$(OLD)/.made: benchmarks/requirements-pinocchio.txt
	@$(call make_venv,$(OLD))
	@echo "installing an old Pinocchio into $(OLD)"
	@$(OLD)/bin/python $(PIP) -r $< || { rm -rf $(OLD); mkdir $(OLD); echo "no Pinocchio for many links"; }
	@touch $@

$(BENCH)/.made: pyproject.toml $(wildcard benchmarks/requirements.txt)
	@$(call make_venv,$(BENCH))
	@echo "installing lissom and the peers into $(BENCH)"
	@$(BENCH)/bin/python $(PIP) -e '.[test]' $(if $(wildcard benchmarks/requirements.txt),-r benchmarks/requirements.txt)
	@touch $@

$(VENV)/.made:
	@$(call make_venv,$(VENV))
	@touch $@

define make_venv
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	echo "lissom needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || echo missing)." \
		"Name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }; \
$(PYTHON) -m venv $(1) || { \
	echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef
