# Genesis Studio. `make run` and `make test` do all their own set-up.
.PHONY: run test fast lint format setup setup-dev bench clean
PY := .venv/bin/python
SCENE ?= quadruped

setup:
	@packaging/setup.sh

setup-dev:
	@packaging/setup.sh --dev

run: setup
	@.venv/bin/genesis-studio $(SCENE)

lint: setup-dev
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

format: setup-dev
	@.venv/bin/ruff check --fix . && .venv/bin/ruff format .

test: lint
	@$(PY) -m pytest

fast: setup-dev
	@$(PY) -m pytest -m "not slow"

bench: setup-dev
	@.venv/bin/genesis-studio bench --envs 1,64,1024 --against mujoco

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis out
