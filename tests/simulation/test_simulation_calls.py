"""The engine's own API: reading, writing, resetting, policies for bad states, refused input."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from genesis_core.engine import Model, Simulation
from genesis_core.errors import DeviceError, GenesisError, OptionError, StateError

XML = """
<mujoco><option timestep=".01"/>
  <worldbody><geom name="floor" type="plane" size="2 2 .1"/>
    <body name="ball" pos="0 0 .5"><freejoint/><geom name="ball" type="sphere" size=".1"/>
      <site name="top" pos="0 0 .1"/></body>
    <body name="arm" pos="1 0 1"><joint name="hinge" axis="0 1 0"/><geom type="capsule" size=".03 .2"/></body>
    <body name="target" mocap="true" pos="0 1 1"/>
  </worldbody>
  <actuator><motor joint="hinge"/></actuator>
  <keyframe>
    <key name="high" time="2.5" qpos="0 0 2 1 0 0 0 .5" qvel="0 0 0 0 0 0 1" ctrl=".25" mpos="3 3 3"/>
    <key qpos="1 1 1 1 0 0 0 0"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def model():
    return Model.from_mujoco(mujoco.MjModel.from_xml_string(XML))


@pytest.fixture
def sim(model):
    with Simulation(model, 11, precision="64", threads=1) as one:
        yield one


def test_values_are_set_for_all_for_some_and_per_environment(sim):
    sim.set("qvel", np.arange(7.0))
    assert (sim.get("qvel") == np.arange(7.0)).all()
    sim.set("qvel", np.zeros(7), envs=[2, 9])
    assert not sim.get("qvel", envs=[2, 9]).any() and (sim.get("qvel", [3]) == np.arange(7.0)).all()
    values = np.random.default_rng(0).normal(size=(3, 7))
    sim.set("qvel", values, envs=[10, 0, 5])
    assert np.array_equal(sim.get("qvel", [10, 0, 5]), values)
    mask = np.zeros(11, bool)
    mask[[0, 5]] = True
    assert np.array_equal(sim.get("qvel", mask), values[1:])
    assert sim.get("xfrc_applied").shape == (11, 4, 6) and not sim.get("xfrc_applied").any()
    sim.set("xfrc_applied", np.ones((4, 6)), envs=4)
    assert sim.get("xfrc_applied", [4]).all() and not sim.get("xfrc_applied", [3]).any()


def test_shapes_are_those_of_mujoco_with_the_environments_in_front(sim):
    d = mujoco.MjData(sim.model.mj)
    names = "qpos qvel act ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat qacc qfrc_bias xpos xquat geom_xpos"
    for name in (names + " geom_xmat site_xpos subtree_com cvel energy sensordata").split():
        assert sim.get(name).shape == (11, *np.shape(getattr(d, name))), name
    assert sim.get("time").shape == sim.get("ncon").shape == (11,)
    assert sim.get("ncon").dtype == np.int64


def test_what_is_read_is_a_copy(sim):
    sim.get("qpos")[:] = 7
    assert not (sim.get("qpos") == 7).all()


def test_time_advances_with_steps_and_can_be_set(sim):
    sim.step(3)
    assert np.allclose(sim.get("time"), 0.03)
    sim.set("time", 5.0, envs=[1])
    sim.step()
    assert np.allclose(sim.get("time", [0, 1]), [0.04, 5.01])
    sim.step(0)
    assert np.allclose(sim.get("time", [0]), 0.04)


def test_reset_goes_to_the_initial_state_or_to_a_keyframe_by_name_and_number(sim):
    sim.set("ctrl", 0.5)
    sim.step(10)
    sim.reset(envs=[1, 2])
    assert np.array_equal(sim.get("qpos", [1]), sim.model.mj.qpos0[None]) and sim.get("time", [1, 3]).tolist() == [
        0,
        0.1,
    ]
    assert sim.get("ctrl", [1, 3]).ravel().tolist() == [0, 0.5]
    sim.reset(envs=[4], key="high")
    assert np.array_equal(sim.get("qpos", [4])[0], sim.model.mj.key_qpos[0])
    assert sim.get("time", [4]) == 2.5 and sim.get("ctrl", [4]) == 0.25
    assert sim.get("mocap_pos", [4]).ravel().tolist() == [3, 3, 3]
    sim.reset(key=1)
    assert (sim.get("qpos")[:, :3] == 1).all()
    with pytest.raises(OptionError, match="hihg"):
        sim.reset(key="hihg")
    with pytest.raises(OptionError, match="2 keyframes"):
        sim.reset(key=2)


def test_a_reset_environment_repeats_its_run_exactly(sim):
    sim.step(60)
    first = sim.get("qpos")
    sim.reset()
    sim.step(60)
    assert np.array_equal(sim.get("qpos"), first)


def test_forward_leaves_the_state_alone(sim):
    before = sim.get("qpos"), sim.get("qvel")
    sim.forward()
    assert np.array_equal(before[0], sim.get("qpos")) and np.array_equal(before[1], sim.get("qvel"))
    assert np.allclose(sim.get("qacc")[:, 2], -9.81)


def test_contacts_of_one_environment_are_those_of_mujoco(sim):
    q = sim.model.mj.qpos0.copy()
    q[2] = 0.09
    sim.set("qpos", q, envs=[6])
    c = sim.contacts(6)
    d = mujoco.MjData(sim.model.mj)
    d.qpos[:] = q
    mujoco.mj_forward(sim.model.mj, d)
    assert len(c["dist"]) == d.ncon == 1 and np.isclose(c["dist"][0], d.contact[0].dist)
    assert np.allclose(c["pos"][0], d.contact[0].pos) and np.allclose(c["frame"][0].ravel(), d.contact[0].frame)
    force = np.zeros(6)
    mujoco.mj_contactForce(sim.model.mj, d, 0, force)
    assert np.allclose(c["force"][0], force) and force[0] > 0
    assert len(sim.contacts(5)["dist"]) == 0


def test_geom_rows_are_the_world_transforms(sim):
    sim.step(5)
    rows = sim.geom_rows([3, 8]).reshape(2, 3, 3, 4)
    assert rows.dtype == np.float32
    assert np.allclose(rows[:, :, :, 3], sim.get("geom_xpos", [3, 8]), atol=1e-6)
    assert np.allclose(rows[:, :, :, :3].reshape(2, 3, 9), sim.get("geom_xmat", [3, 8]), atol=1e-6)


def test_a_diverging_environment_is_reset_counted_and_alone(model):
    with Simulation(model, 11, threads=1) as sim:
        sim.step(5)
        sim.set("qvel", np.full(7, 1e11), envs=[3])
        sim.step(4)
        assert sim.stats()["nan_count"] == 1
        assert np.isfinite(sim.get("qpos")).all() and np.allclose(sim.get("time", [2, 3]), [0.09, 0.04])
        again = sim.get("qpos", [3])
    with Simulation(model, 1, threads=1) as other:
        other.step(4)
        assert np.array_equal(other.get("qpos"), again)


def test_a_diverging_environment_can_be_frozen_or_raise(model):
    with Simulation(model, 3, on_diverge="freeze", threads=1) as sim:
        sim.set("qvel", np.full(7, 1e11), envs=[1])
        before = sim.get("qpos")
        sim.step(7)
        after = sim.get("qpos")
        assert np.array_equal(after[1], before[1]) and not np.array_equal(after[0], before[0])
        assert sim.stats()["frozen"] == 1 and np.allclose(sim.get("time"), [0.07, 0, 0.07])
        sim.reset(envs=[1])
        sim.step(7)
        assert sim.stats()["frozen"] == 0 and np.allclose(sim.get("time", [1]), 0.07)
    with Simulation(model, 3, on_diverge="raise", threads=1) as sim:
        sim.set("qvel", np.full(7, 1e11), envs=[1])
        with pytest.raises(GenesisError, match="environment 1"):
            sim.step()


CROWD = "".join(
    f'<body pos="{x * 0.15} {y * 0.15} {z * 0.15 + 0.07}"><freejoint/><geom type="box" size=".07 .07 .07"/></body>'
    for x in range(3)
    for y in range(3)
    for z in range(2)
)


def test_too_small_a_contact_list_is_enlarged_and_nothing_is_lost():
    text = f'<mujoco><worldbody><geom type="plane" size="3 3 .1"/>{CROWD}</worldbody></mujoco>'
    model = Model.from_mujoco(mujoco.MjModel.from_xml_string(text))
    with Simulation(model, 8, threads=1) as wide, Simulation(model, 8, threads=1) as tight:
        from genesis_core.backend.tables import Work

        tight._cpu.capacities = {"ncon_max": 3}
        tight._cpu.works = [Work(model, 32, tight.width, tight._cpu.capacities)]
        wide.step(30)
        tight.step(30)
        assert tight.stats()["overflow"] >= 1
        assert np.array_equal(tight.get("qpos"), wide.get("qpos"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_envs": 0}, "n_envs = 0"),
        ({"n_envs": -1}, "n_envs = -1"),
        ({"n_envs": 2.5}, "2.5"),
        ({"n_envs": 10**9}, "memory"),
        ({"n_envs": 10**15}, "memory"),
        ({"precision": "16"}, "16"),
        ({"threads": 0}, "threads = 0"),
        ({"on_diverge": "panic"}, "panic"),
    ],
)
def test_senseless_options_are_refused_with_their_value(model, change, message):
    with pytest.raises(OptionError, match=message):
        Simulation(model, **{"n_envs": 1, **change})


@pytest.mark.parametrize("backend", ["tpu", "cuda"])
def test_a_backend_that_is_not_there_is_a_device_error(model, backend):
    with pytest.raises(DeviceError, match=backend):
        Simulation(model, 1, backend=backend)


def test_wrong_values_are_refused_with_name_shape_and_place(sim):
    with pytest.raises(OptionError, match=r"qvel.*\(6,\).*\(7,\)"):
        sim.set("qvel", np.zeros(6))
    with pytest.raises(OptionError, match=r"qpos.*nan"):
        sim.set("qpos", np.full(8, np.nan))
    with pytest.raises(OptionError, match="environment 11"):
        sim.get("qpos", envs=[11])
    with pytest.raises(OptionError, match="environment -1"):
        sim.set("qpos", np.zeros(8), envs=[-1])
    with pytest.raises(OptionError, match="can only be read"):
        sim.set("xpos", 0)
    with pytest.raises(OptionError, match="qpos"):
        sim.get("qpso")
    with pytest.raises(OptionError):
        sim.set("ctrl", "fast")
    with pytest.raises(OptionError):
        sim.step(-1)


def test_closing_twice_is_harmless_and_using_a_closed_simulation_is_an_error(model):
    sim = Simulation(model, 2)
    sim.close()
    sim.close()
    for call in (sim.step, sim.forward, sim.reset, sim.stats, lambda: sim.get("qpos")):
        with pytest.raises(StateError, match="closed"):
            call()


def test_memory_per_environment_stays_small():
    folder = pytest.importorskip("dm_control").__path__[0]
    model = Model.from_mujoco(mujoco.MjModel.from_xml_path(f"{folder}/suite/humanoid.xml"))
    with Simulation(model, 8) as sim:
        assert sim.bytes_per_env() <= 4096


@pytest.mark.parametrize("n", [1, 5, 8, 16, 19])
def test_what_is_set_for_all_environments_is_read_back_and_never_a_view(model, n):
    with Simulation(model, n, threads=1) as sim:
        value = np.arange(n * 7, dtype=float).reshape(n, 7) / 100
        sim.set("qvel", value)
        first = sim.get("qvel")
        assert np.array_equal(first, value.astype(np.float32))
        assert np.array_equal(sim.get("qvel", list(range(n))), first)
        sim.set("qvel", 0.0)
        assert np.array_equal(first, value.astype(np.float32)) and not sim.get("qvel").any()
        unused = sim._view("qvel")[-1][:, (n - 1) % sim.width :]
        assert np.array_equal(unused, np.repeat(unused[:, :1], unused.shape[1], axis=1))
