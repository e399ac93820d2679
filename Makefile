# `make reproduce` and `make test` prepare .venv if necessary and run; `make help` lists all targets.

# Settings of the user's own Python, installers, shell and notebook do not reach the programs that run here. Of the settings of pip
# and uv, those that say where packages come from stay. The jobs are protected in pipeline/workflow/invocation.py.
SOURCES := INDEX% EXTRA_INDEX% DEFAULT_INDEX FIND_LINKS NO_INDEX OFFLINE KEYRING_PROVIDER CERT CLIENT_CERT NATIVE_TLS SYSTEM_CERTS \
  TRUSTED_HOST INSECURE_HOST PROXY TIMEOUT DEFAULT_TIMEOUT HTTP_% REQUEST_% RETRIES CONCURRENT_% CACHE% NO_CACHE% LINK_MODE
HARMLESS := PYTHON PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX PIP_CONFIG_FILE \
  $(addprefix PIP_,$(SOURCES)) $(addprefix UV_,$(SOURCES))
$(foreach name,$(filter-out $(HARMLESS),$(filter PIP_% UV_% PYTHON% SNAKEMAKE_% BASH_ENV ENV MPLBACKEND MATPLOTLIBRC,$(.VARIABLES))), \
  $(eval unexport $(name)))
export PYTHONPATH := $(CURDIR)
export PYTHONUTF8 := 1
# For what is set in files: pip.conf and uv.toml.
export PIP_USER := no
export UV_NO_CONFIG := 1
# WSL sets NAME to the name of the machine.
ifeq ($(origin NAME),environment)
NAME =
endif

# The default scale of a reference.
ifeq ($(origin SCALE),undefined)
reference: SCALE = paper
endif
SCALE  ?= laptop
STUDY  ?= all
# nproc would limit the jobs to OMP_NUM_THREADS, which is for the numerical libraries.
CORES  ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PYTHON ?= python3
UV     := uv==0.13.8

BIN   := .venv/bin
READY := .venv/.installed
DEVELOPMENT := .venv/.development

# One thread for each job; jobs run side by side.
export OMP_NUM_THREADS := 1

# Snakemake, Matplotlib and W&B write below the home directory. If it is not writable, they get a folder here.
NO_HOME := $(shell d="$${XDG_CACHE_HOME:-$$HOME/.cache}"; while [ ! -e "$$d" ]; do d=$$(dirname "$$d"); done; test -w "$$d" || echo yes)
ifneq ($(NO_HOME),)
export XDG_CACHE_HOME := $(CURDIR)/.snakemake/cache
export MPLCONFIGDIR ?= $(XDG_CACHE_HOME)/matplotlib
export WANDB_CONFIG_DIR ?= $(XDG_CACHE_HOME)/wandb
endif

# Rules call `python`, which must be the environment's. STUDY=all means every study in conf/experiment/.
ACTIVE    = PATH="$(abspath $(BIN)):$$PATH"
SNAKEMAKE = $(ACTIVE) SCALE="$(SCALE)" STUDY="$(filter-out all,$(STUDY))" snakemake --cores $(CORES) --nolock --rerun-incomplete
# The targets to resume; empty means all.
TARGETS ?=
LOCK      = $(BIN)/python -m pipeline.workflow.lock
# If data have to be downloaded, they are fetched first. The plan of the other jobs then leaves out unavailable data sets.
# Status 2: only a download can tell.
KNOW_DATA = $(BIN)/python -m pipeline.workflow.availability || { test $$? -eq 2 && $(SNAKEMAKE) --until fetch; }

.DEFAULT_GOAL := help
.PHONY: help reproduce unlock sweep report reference figures gallery fetch test slow soak test-cluster test-cluster-short lint types docs check resume clean lock dist test-lowest

help:
	@echo 'make reproduce   prepare .venv if necessary, then make every table and figure and results/report.html'
	@echo 'make test        prepare .venv if necessary, then run the tests'
	@echo 'make slow        run the slow tests: every study from raw data, and Spark'
	@echo
	@echo 'make figures     make every table and figure from the committed reference results, without data, in one to two minutes'
	@echo '                 (NAME=fliptest/figure_2: only this figure); results/reference/report.html'
	@echo 'make gallery     the same, and docs/gallery.md with all figures'
	@echo 'make reference   store the results of a complete run in data/reference/ (STUDY=name, SCALE=paper)'
	@echo 'make fetch       only get and verify the raw data'
	@echo 'make sweep       run a sweep of conf/sweep/, for example make sweep NAME=attack'
	@echo 'make resume      continue an interrupted run in the current environment (make reproduce also continues)'
	@echo 'make unlock      allow a run again after a run on another host was killed'
	@echo 'make soak        kill smoke runs at random and check that each ends with the same bytes (KILLS=50 SEED=0 STUDY=name)'
	@echo 'make report      make the workflow report of the last run, results/workflow.html'
	@echo 'make test-cluster  set up Slurm with a single node (as root) and run the tests on it'
	@echo 'make test-cluster-short  the same with only the test that cancels jobs, in about three minutes; skipped if Slurm does not start'
	@echo 'make test-gpu    test the code that depends on the device, on the GPU and on the CPU; skipped without a GPU'
	@echo 'make check       run all tests, a short soak test, lint, types and docs, before a release'
	@echo 'make lint        run ruff: rules and formatting'
	@echo 'make types       run mypy'
	@echo 'make docs        build the documentation, with warnings as errors: docs/_build/html/index.html'
	@echo 'make rulegraph   draw the rules of the workflow: docs/images/workflow.svg'
	@echo 'make clean       remove the results of the quick scales (PAPER=1: of all scales, RAW=1: also downloaded data)'
	@echo 'make lock        resolve requirements.lock and requirements-dev.lock from pyproject.toml'
	@echo 'make dist        build the wheel and the sdist of the library in dist/; the same commit gives the same bytes'
	@echo 'make test-lowest run the tests of the library with the lowest versions that pyproject.toml allows'
	@echo
	@echo 'Variables: SCALE=name (laptop; conf/scale/)  STUDY=name (all)  DATASETS="name name" (all)'
	@echo '           FINISHED=yes (only complete parts)  CORES=n (all)'
	@echo '           PYTHON=python3.11  DATA_MIRROR=folder or URL with the raw files'

# uv does not read pip's configuration, so we pass on an index or a folder of wheels that is named there.
LIKE_PIP = of() { $(BIN)/python -m pip config get "$$1" 2>/dev/null || true; }; \
  links="$${PIP_FIND_LINKS:-$$(of global.find-links)}"; index="$${PIP_INDEX_URL:-$$(of global.index-url)}"; \
  if [ -n "$$links" ]; then UV_FIND_LINKS="$$(echo $$links | tr ' ' ',')"; export UV_FIND_LINKS; fi; \
  if [ -n "$$index" ]; then UV_DEFAULT_INDEX="$$index"; export UV_DEFAULT_INDEX; fi; \
  export VIRTUAL_ENV="$(CURDIR)/.venv"

$(BIN)/uv:
	@command -v $(PYTHON) >/dev/null || { echo '$(PYTHON) is not installed. Install Python 3.11 or newer.'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, found $$($(PYTHON) --version). Name another: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module. On Debian or Ubuntu: apt install python3-venv. Then run make again."; exit 1; }
	@echo 'Creating .venv (once; this takes a few minutes if torch has to be downloaded) ...'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)

$(READY): requirements.lock | $(BIN)/uv
	@echo 'Installing requirements.lock into .venv ...'
	@set -e; $(LIKE_PIP); \
	  $(BIN)/uv pip install --quiet --compile-bytecode -r requirements.lock; \
	  $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Additional packages for tests, checks and documentation.
$(DEVELOPMENT): requirements-dev.lock $(READY)
	@echo 'Installing requirements-dev.lock into .venv ...'
	@set -e; $(LIKE_PIP); $(BIN)/uv pip install --quiet --compile-bytecode -r requirements-dev.lock
	@touch $@

reproduce: $(READY)
	@$(LOCK)
	@$(KNOW_DATA)
	@$(SNAKEMAKE)

# The same without preparing .venv: in the current folder, with the programs in BIN.
resume:
	@$(LOCK)
	@$(KNOW_DATA)
	@$(SNAKEMAKE) $(TARGETS)

# Only the user can know whether a run on another host has ended.
unlock:
	@$(LOCK) --unlock

sweep: $(READY)
	@test -n "$(NAME)" || { \
	  echo 'Name a sweep: make sweep NAME=attack. There are: $(sort $(basename $(notdir $(wildcard conf/sweep/*.yaml))))'; \
	  exit 1; }
	@$(LOCK)
	@$(KNOW_DATA)
	@$(SNAKEMAKE) results/sweeps/$(SCALE)/$(NAME)/summary.csv

fetch: $(READY)
	@$(LOCK)
	@$(SNAKEMAKE) --until fetch

report: $(READY)
	@$(SNAKEMAKE) artefacts
	@$(SNAKEMAKE) --report results/workflow.html artefacts

# Completed jobs are not repeated: the reference is made from files that are up to date.
reference: $(READY)
	@test "$(STUDY)" != all || { echo 'Name a study: make reference STUDY=fliptest'; exit 1; }
	@$(LOCK)
	@$(SNAKEMAKE) results/reference/$(SCALE)/$(STUDY).recorded

figures: $(READY)
	@$(SNAKEMAKE) $(if $(NAME),results/reference/$(if $(findstring /figure_,$(NAME)),figures/$(NAME).pdf,tables/$(NAME).csv),figures)

# A page with all figures, for readers who have not run anything.
gallery: figures
	@$(BIN)/python -m docs.gallery

test: $(DEVELOPMENT)
	@$(ACTIVE) pytest -n 2 --dist loadgroup -m "not slow"

# The slow tests: every study from raw data, the tests that need its results, and Spark.
slow: $(DEVELOPMENT)
	@$(ACTIVE) pytest -n 2 --dist loadgroup -m slow

# Not part of `test`: an hour, with all studies. `make check` runs a tenth of the kills, on one study.
KILLS   ?= 50
SEED    ?= 0
soak: $(READY)
	@$(ACTIVE) python -m tests.soak --kills $(KILLS) --seed $(SEED) --studies "$(filter-out all,$(STUDY))" --cores $(CORES)

# Not part of `test`: it installs Slurm from the distribution's packages, and takes a few minutes.
test-cluster: $(DEVELOPMENT)
	@tests/cluster/slurm.sh up
	@$(ACTIVE) TEST_CLUSTER=1 pytest tests/cluster; status=$$?; tests/cluster/slurm.sh down; exit $$status

# One job is cancelled, one runs out of time, the others complete. Skipped with a message if Slurm cannot be installed or started.
test-cluster-short: $(DEVELOPMENT)
	@if tests/cluster/slurm.sh up; then \
	  $(ACTIVE) TEST_CLUSTER=1 pytest tests/cluster/test_slurm.py -k what_slurm_ends; status=$$?; tests/cluster/slurm.sh down; exit $$status; \
	else tests/cluster/slurm.sh down; echo 'SKIPPED: the tests of running on Slurm, which cannot be started here (see above).'; fi

.PHONY: test-gpu
test-gpu: $(DEVELOPMENT)
	@$(ACTIVE) pytest -q -m gpu -rs tests

lint: $(DEVELOPMENT)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(DEVELOPMENT)
	@$(BIN)/mypy

docs: $(DEVELOPMENT)
	@rm -rf docs/generated
	@$(BIN)/python -m sphinx -W --keep-going -q -E -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

# The picture in docs/reproducing.md: each rule is below the rules that it waits for. Needs Graphviz.
.PHONY: rulegraph
rulegraph: $(READY)
	@set -e; graph=$$(mktemp); trap 'rm -f "$$graph"' EXIT; \
	  $(ACTIVE) SCALE=smoke snakemake --quiet --cores 1 --rulegraph > "$$graph"; \
	  dot -Tsvg -Granksep=0.3 "$$graph" | sed 's/font-family="sans"/font-family="sans-serif"/' > docs/images/workflow.svg

check: test slow lint types docs
	@$(MAKE) soak KILLS=5 STUDY=individual_fairness

# Expensive results are in folders named by their scale, so `make clean` can remove a single scale. Tables, figures and report belong to
# the last run and can be made again from the other results in a minute.
# Without PAPER=1, only scales with `quick: true` in conf/scale are removed.
SCALES := $(basename $(notdir $(if $(PAPER),$(wildcard conf/scale/*.yaml),$(shell grep -l '^quick: true' conf/scale/*.yaml))))
clean:
	rm -rf $(foreach scale,$(SCALES),data/prepared/$(scale) $(wildcard results/*/$(scale)))
	rm -rf results/tables results/figures results/captions results/pages results/first results/report.html results/workflow.html results/summary.txt \
	  $(if $(PAPER),results/wandb)
	rm -rf build docs/_build docs/generated *.egg-info .pytest_cache .ruff_cache .hypothesis $(if $(RAW),data/raw)

# All packages are resolved together. requirements.lock holds those of the experiments, requirements-dev.lock the rest.
# One lock serves machines with and without a GPU: which build of torch, and the CUDA libraries that it pins itself,
# are left to the installer. The build of XGBoost without CUDA does not exist for macOS.
lock: | $(BIN)/uv
	@set -e; $(LIKE_PIP); all=$$(mktemp); trap 'rm -f "$$all"' EXIT; \
	  resolve() { $(BIN)/uv pip compile --quiet pyproject.toml --extra study --python-version 3.11 --no-annotate --no-header \
	    --no-emit-find-links --no-emit-index-url "$$@"; }; \
	  portable() { sed -e 's/+cpu$$//' -e '/^nvidia-/d' -e '/^cuda-/d' -e '/^triton==/d' \
	    -e "s/^xgboost-cpu==[^ ]*$$/& ; sys_platform != 'darwin'/"; }; \
	  grep -hv '^-r' requirements.lock requirements-dev.lock > "$$all"; \
	  resolve --extra dev --output-file "$$all" > /dev/null; \
	  { echo '# The experiments. Written by `make lock`.'; resolve --constraint "$$all" | portable; } > requirements.lock; \
	  { echo '# Tests, checks and documentation. Written by `make lock`.'; echo '-r requirements.lock'; \
	    portable < "$$all" | grep -vxFf requirements.lock; } > requirements-dev.lock

# The same commit gives the same bytes: every time is the time of the commit, and owners and modes are fixed. setuptools does not
# do that for an sdist, so we pack it again. The installed setuptools builds, because each version writes its name into the wheel.
# We delete the list of files of an earlier build, because setuptools adds to it.
dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: $(READY)
	@rm -rf dist build *.egg-info
	@umask 022; export VIRTUAL_ENV="$(CURDIR)/.venv"; $(BIN)/uv build --quiet --no-build-isolation --out-dir dist
	@set -e; cd dist; sdist=$$(basename *.tar.gz .tar.gz); tar -xzf "$$sdist.tar.gz"; \
	  tar --sort=name --mtime="@$$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar \
	    -cf - "$$sdist" | gzip -9n > "$$sdist.tar.gz"; rm -r "$$sdist"; sha256sum *

# The lowest version of every range. torch and the packages that only the tests import have the versions of the lock.
# Tests that import the experiments are left out.
LOWEST  = .venv/lowest
LIBRARY = $(shell grep -rLE '(from|import) (pipeline|tests\.builders)' --include='test_*.py' \
  tests/audits/permutation tests/audits/test_correction.py tests/cli tests/tables tests/test_plain_install.py)
test-lowest: | $(BIN)/uv
	@set -e; $(LIKE_PIP); unset VIRTUAL_ENV; mkdir -p $(LOWEST); \
	  grep -hE '^(torch|hypothesis|polars|pytest|pytest-xdist|statsmodels)==' requirements.lock requirements-dev.lock > $(LOWEST)/tests.txt; \
	  $(BIN)/uv pip compile --quiet pyproject.toml $(LOWEST)/tests.txt --extra all --resolution lowest-direct --python $(BIN)/python \
	    --no-annotate --no-emit-find-links --no-emit-index-url --output-file $(LOWEST)/requirements.txt; \
	  $(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)/env; \
	  $(BIN)/uv pip install --quiet --python $(LOWEST)/env/bin/python -r $(LOWEST)/requirements.txt; \
	  $(BIN)/uv pip install --quiet --python $(LOWEST)/env/bin/python --no-deps --no-build-isolation --editable .; \
	  $(LOWEST)/env/bin/python -m pytest -n 2 --dist loadgroup -m "not slow" $(LIBRARY)
