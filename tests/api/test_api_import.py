"""What `import genesis_core` costs and offers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import genesis_core as gs


def fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_import_loads_no_heavy_package() -> None:
    code = (
        "import sys, json, genesis_core\n"
        "print(json.dumps([m for m in ('torch', 'numba', 'mujoco', 'pydantic', 'numpy') if m in sys.modules]))"
    )
    assert json.loads(fresh(code)) == []


def test_the_import_takes_less_than_a_fifth_of_a_second() -> None:
    code = "import time; t = time.perf_counter(); import genesis_core; print(time.perf_counter() - t)"
    assert min(float(fresh(code)) for _ in range(3)) < 0.2


def test_every_promised_name_exists() -> None:
    missing = [name for name in gs.__all__ if not hasattr(gs, name)]
    assert missing == []


def test_a_wrong_name_is_answered_with_the_near_one() -> None:
    with pytest.raises(AttributeError, match="did you mean destroy"):
        gs.destory  # noqa: B018


def test_backend_is_the_backend_even_after_the_package_of_that_name_was_imported() -> None:
    code = (
        "import genesis_core as gs, genesis_core.backend.devices\n"
        "assert gs.backend is None and gs.device is None\n"
        "gs.init(backend=gs.cpu, logging_level='error')\n"
        "print(gs.backend, gs.device, gs.tc_float)\n"
        "gs.destroy()\n"
        "assert gs.backend is None"
    )
    assert fresh(code).split() == ["gs.cpu", "cpu", "torch.float32"]
