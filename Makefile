SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Without .pyc files each of the many processes that tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PYTHON := $(VENV)/bin/python
PRODUCT := $(VENV)/.coincide-product
DEVELOPMENT := $(VENV)/.coincide-development
CLASSES := .cache/spark-classes.jsa
WITH_JAVA = JAVA_HOME=$$(scripts/find-java.sh) && export JAVA_HOME &&

.PHONY: help demo test test-slow test-all test-rapids gpu counted lint docs notebooks dist conda release bench venv java rapids-jar lock clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(PRODUCT) ## Join a small sample on Spark, and say what was found and how fast
	@$(WITH_JAVA) $(VENV)/bin/coincide demo

PYTEST = $(WITH_JAVA) $(PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations=40 --durations-min=5

test: $(DEVELOPMENT) $(CLASSES) ## Run the quick tests, among them each way of Spark; ARGS="-k name" goes to pytest
	@$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(DEVELOPMENT) $(CLASSES) ## Run all other tests: of clusters, kernels, RAPIDS (after make rapids-jar), pages, experiments
	@$(PYTEST) -m slow $(ARGS)

test-all: $(DEVELOPMENT) $(CLASSES) ## Run all tests
	@$(PYTEST) $(ARGS)

# With it Spark starts in half the time, and without it as always.
$(CLASSES): $(DEVELOPMENT)
	@echo "Loading Spark's classes for the tests once, which takes half a minute"
	@mkdir -p $(@D)
	-@$(WITH_JAVA) $(PYTHON) -m tests.helpers.shared_classes >.cache/spark-classes.log 2>&1

test-rapids: rapids-jar ## Run the tests beside the RAPIDS Accelerator, which need its jar but no GPU
	@$(WITH_JAVA) $(PYTHON) -m pytest -m rapids $(ARGS)

# Without a GPU doctor fails, and says why: tests would only be skipped.
gpu: $(DEVELOPMENT) ## Where a GPU is: install its packages, test all kernels on it, measure, and write bench/results/gpu.json
	@scripts/install.sh $(VENV) -e ".[gpu]"
	$(VENV)/bin/coincide doctor --gpu
	$(PYTHON) -m pytest tests/gpu_kernels tests/bench/papers/streams $(ARGS)
	$(PYTHON) -m bench run gpu --record

# Where there is no GPU, on the virtual one of the tests. CI compares what it counts with these results.
counted: $(DEVELOPMENT) ## Count what the kernels of joins do, without a GPU, and write bench/results/gpu-counted.json
	@eval "$$($(PYTHON) -m tests.virtual_gpu)" && VIRTUAL_GPU_COUNTS=1 $(PYTHON) -m bench run gpu-counted --record
	$(PYTHON) -m bench report

lint: $(DEVELOPMENT) ## Check style, types, words and which package imports which
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTHON) scripts/check_words.py

# Not --quiet, which hides warnings from --strict as well.
docs: $(DEVELOPMENT) ## Build the site of documentation into build/site, and check its links
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	@$(PYTHON) scripts/check_site.py build/site

notebooks: $(DEVELOPMENT) ## Run the notebooks of examples/; the site shows what they print and draw
	@$(WITH_JAVA) $(PYTHON) scripts/run_notebooks.py examples/notebooks build/notebooks

dist: $(DEVELOPMENT) ## Build the wheel and the source archive into dist/, and check what they say of themselves
	@rm -rf build/lib build/bdist.* dist
	@$(PYTHON) -m build --no-isolation
	@$(VENV)/bin/twine check --strict dist/*

conda: $(DEVELOPMENT) ## Build the conda package into build/conda, from the channel that COINCIDE_CONDA_CHANNEL names
	@$(PYTHON) scripts/build_conda.py

# Twine looks at archives alone, so checksums come last.
release: dist conda notebooks docs ## Build all of a release into dist/, check it in empty environments, and write checksums
	@$(WITH_JAVA) $(PYTHON) scripts/check_release.py $(ARGS)

bench: $(DEVELOPMENT) ## Run the benchmarks; ARGS go to them
	@$(WITH_JAVA) $(PYTHON) -m bench $(ARGS)

venv: $(DEVELOPMENT) ## Make .venv with what developers need, in the versions of requirements.lock

java: ## Find a Java for Spark, or install one, and print where it is
	@scripts/find-java.sh

rapids-jar: $(DEVELOPMENT) ## Fetch the RAPIDS Accelerator (1 GB), once, and print where it is
	@scripts/get-rapids-jar.sh $(PYTHON)

lock: $(DEVELOPMENT) ## Write the versions installed in .venv to requirements.lock
	{ sed '/^[^#]/,$$d' requirements.lock; $(PYTHON) -m pip freeze --all --exclude pip --exclude-editable; } > $(VENV)/requirements.lock
	mv $(VENV)/requirements.lock requirements.lock
	touch $(PRODUCT) $(DEVELOPMENT)

clean: ## Remove what building and testing left; .venv stays
	rm -rf build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf .cache artifacts derby.log metastore_db spark-warehouse
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -print0 | xargs -0 rm -rf

$(PRODUCT): pyproject.toml requirements.lock
	@scripts/make-venv.sh $(VENV)
	@echo "Installing Coincide into $(VENV); the first time this takes half a minute, or twice that by pip"
	@scripts/install.sh $(VENV) -e ".[spark,explore]"
	@touch $@

$(DEVELOPMENT): $(PRODUCT)
	@echo "Installing what developers need into $(VENV); the first time this takes a minute or two"
	@scripts/install.sh $(VENV) -e ".[spark,explore,dev,bench,docs]"
	@touch $@
