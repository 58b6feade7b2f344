"""`genesis-studio info`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import resources
from genesis_core.cli.info import info


def test_a_scene_is_described_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert info(str(resources.scene_path("quadruped")), as_json=True) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["counts"]["degrees of freedom"] == 18
    assert len(facts["joints"]) == facts["counts"]["joints"] == 13
    assert facts["actuators"][0]["range"] == [-0.9, 0.9]
    assert facts["environments"] == 64
    assert facts["unsupported"] == []


def test_tables_show_names_limits_and_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.xml"
    path.write_text(
        '<mujoco><option integrator="RK4"/><worldbody><body>'
        '<joint name="[bold]" range="-90 90"/><geom size="1"/></body></worldbody></mujoco>'
    )
    assert info(str(path)) == 0
    out = capsys.readouterr().out
    assert "[bold]" in out
    assert "-1.571 … 1.571" in out
    assert "integrator RK4 is not simulated" in " ".join(out.split())


@pytest.mark.parametrize("as_json", [False, True])
def test_a_users_mistake_ends_with_two_and_one_message(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.xml"
    path.write_text("<mujoco>\n<bodi/></mujoco>")
    assert info(str(path), as_json=as_json) == 2
    captured = capsys.readouterr()
    if as_json:
        assert json.loads(captured.out)["where"] == f"{path}:2 <bodi>"
    else:
        assert captured.out == ""
        assert captured.err.startswith(f"{path}:2 <bodi>: unrecognized element")
    assert "Traceback" not in captured.out + captured.err


def test_no_scene_and_a_folder_are_mistakes_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert info(None) == 2
    assert info(str(tmp_path)) == 2
    assert "directory" in capsys.readouterr().err


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert info(None, schema=True) == 0
    assert "n_envs" in json.loads(capsys.readouterr().out)["properties"]
