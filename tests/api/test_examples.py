"""The examples run as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OURS = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_to_its_end_and_prints_numbers(path: Path) -> None:
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=280, env=OURS)
    assert run.returncode == 0, run.stderr
    assert "nan" not in run.stdout and any(c.isdigit() for c in run.stdout)


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"01_hello.py", "batched.py", "multi_gpu.py", "launch.py"}
