"""The last states of environments that diverge."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_tools import studio

from genesis_core.engine import Model, Simulation
from genesis_core.record.recording import RecordingReader
from genesis_core.runtime.blackbox import AT_ONCE, IN_ALL, BlackBox

pytestmark = pytest.mark.timeout(900)  # the first call may compile the kernels

# A servo that is far too stiff for the time step: with a target it swings ever wider until it leaves all numbers.
STIFF = """
<mujoco model="stiff">
  <option timestep="0.01" integrator="Euler"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body pos="0 0 1"><joint name="swing" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/></body>
  </worldbody>
  <actuator><position name="swing" joint="swing" kp="2600"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def stiff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stiff") / "stiff.xml"
    path.write_text(STIFF)
    return path


def run_to_the_end(sim: Simulation, box: BlackBox, chunk: int, most: int = 2000):
    """Steps in chunks until something diverges; (the report, first step of the last chunk)."""
    for step in range(0, most, chunk):
        box.before(step, chunk)
        sim.step(chunk)
        if len(sim.diverged):
            return box.explain(first_env=100), step
    raise AssertionError("nothing diverged")


@pytest.mark.parametrize("precision", ["32", "64"])
def test_the_last_moments_are_those_of_the_run_bit_by_bit(stiff, precision):
    model = Model.from_file(stiff)
    ctrl = np.zeros((11, 1))
    ctrl[3] = 0.5
    with Simulation(model, n_envs=11, precision=precision) as sim:
        sim.set("ctrl", ctrl)
        sim.set("qpos", [1.5])  # at rest: the others hang there with no force but gravity's
        sim.set("qpos", [0.0], envs=[3])
        box = BlackBox(sim)
        report, last = run_to_the_end(sim, box, chunk=7)
        assert 3 in sim.diverged
    at = report.envs.index(103)
    steps = report.arrays["step"]
    assert np.array_equal(np.diff(steps), np.ones(len(steps) - 1)) and last <= steps[-1] < last + 7
    assert len(steps) > 14, "more than two runs"
    with Simulation(model, n_envs=1, precision=precision, on_diverge="freeze") as again:
        again.set("ctrl", 0.5)
        for step in range(int(steps[-1]) + 1):
            if step >= steps[0]:
                k = step - int(steps[0])
                assert np.array_equal(report.arrays["qpos"][k, at], again.get("qpos")[0])
                assert np.array_equal(report.arrays["qvel"][k, at], again.get("qvel")[0])
                assert report.arrays["ctrl"][k, at, 0] == np.float32(0.5)
            assert again.stats()["frozen"] == 0
            again.step(1)
        assert again.stats()["frozen"] == 1, "the step after the last moment is the one that fails"


def test_each_environment_is_told_once_and_not_too_many(stiff):
    with Simulation(Model.from_file(stiff), n_envs=50) as sim:
        box = BlackBox(sim)
        told = []
        for _ in range(12):
            sim.set("qvel", 1e11)
            box.before(0, 1)
            sim.step(1)
            assert len(sim.diverged) == 50
            report = box.explain(0)
            told += report.envs if report is not None else []
            assert report is None or len(report.envs) <= AT_ONCE
        assert len(told) == len(set(told)) == IN_ALL


def test_states_from_before_a_change_are_not_mixed_with_those_after(stiff):
    with Simulation(Model.from_file(stiff), n_envs=2) as sim:
        box = BlackBox(sim)
        box.before(0, 5)
        sim.step(5)
        sim.reset()
        box.forget()
        sim.set("qvel", 1e11)
        box.before(0, 1)
        sim.step(1)
        report = box.explain(0)
        assert report is not None and report.arrays["step"].tolist() == [0]


@pytest.mark.slow
def test_record_mode_saves_them_beside_the_recording(stiff, tmp_path):
    out = tmp_path / "out"
    model = tmp_path / "keyed.xml"
    model.write_text(STIFF.replace("</actuator>", '</actuator><keyframe><key qpos="0" ctrl="0.5"/></keyframe>'))
    done = studio("record", model, "--envs", "6", "--steps", "400", "--no-video", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    found = sorted(out.glob("diverged-*.gsrec"))
    assert found, done.stderr
    reader = RecordingReader(found[0])
    assert reader.meta.complete and reader.length > 10 and reader.scene.is_file()
    assert np.isfinite(np.asarray(reader.times)).all()
    assert any(str(found[0]) in text for text in json.loads(done.stdout)["warnings"])
