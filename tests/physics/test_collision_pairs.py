"""Candidate pairs and contact parameters against the contacts that MuJoCo makes."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from genesis_core.compiler.lower_collision import candidates, contact_parameters, lower_collision, unsupported_pairs

pytestmark = pytest.mark.parity


def compiled(xml: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    mj = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    return mj, data


def random_geom(rng: np.random.Generator, name: str, big: bool = True) -> str:
    """A sphere so large that it touches every other one, with random contact parameters."""
    size = 1 if big else rng.uniform(0.1, 1)
    solref = (
        f"{rng.uniform(0.01, 0.1)} {rng.uniform(0.5, 1.5)}" if rng.random() < 0.7 else f"{-rng.uniform(100, 900)} -20"
    )
    return (
        f'<geom name="{name}" type="sphere" size="{size}" contype="{rng.integers(0, 4)}" '
        f'conaffinity="{rng.integers(0, 4)}" condim="{rng.choice([1, 3, 4, 6])}" priority="{rng.integers(0, 2)}" '
        f'solmix="{rng.choice([0, 1, 3])}" friction="{rng.uniform(0, 1):.3f} {rng.uniform(0, 0.01):.4f} .01" '
        f'solref="{solref}" solimp="0.8 {rng.uniform(0.81, 0.95)} 0.002 0.4 {rng.integers(1, 3)}" '
        f'margin="{rng.choice([0, 0.01, 0.03])}" gap="{rng.choice([0, 0.02])}"/>'
    )


def random_body(rng: np.random.Generator, names: list[str], geoms: list[str], depth: int) -> str:
    name = f"b{len(names)}"
    names.append(name)
    joint = "<joint/>" if rng.random() < 0.55 else ""
    if depth == 0 and rng.random() < 0.25:
        joint = "<freejoint/>"
    mocap = ' mocap="true"' if depth == 0 and not joint and rng.random() < 0.5 else ""
    text = f'<body name="{name}"{mocap}>{joint}<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    for _ in range(rng.integers(0, 3)):
        geoms.append(f"g{len(geoms)}")
        text += random_geom(rng, geoms[-1])
    if depth < 3:
        for _ in range(rng.integers(0, 3 - depth // 2)):
            text += random_body(rng, names, geoms, depth + 1)
    return text + "</body>"


def random_model(seed: int) -> str:
    """Bodies of every sort in one heap: welded, jointed, free, mocap; planes, excludes and explicit pairs."""
    rng = np.random.default_rng(seed)
    names: list[str] = []
    geoms: list[str] = []
    world = random_geom(rng, "w0") + (random_geom(rng, "w1") if rng.random() < 0.5 else "")
    if rng.random() < 0.5:
        world += '<geom name="floor" type="plane" size="1 1 1"/>'
    world += "".join(random_body(rng, names, geoms, 0) for _ in range(4))
    extra = ""
    for _ in range(3):
        one, two = rng.choice(names, 2, replace=False) if len(names) > 1 else (None, None)
        if one:
            extra += f'<exclude body1="{one}" body2="{two}"/>'
    seen: set[frozenset[str]] = set()
    choices = [*geoms, "w0"]
    for _ in range(4):
        one, two = (str(g) for g in rng.choice(choices, 2, replace=False)) if len(choices) > 1 else ("", "")
        if one and frozenset((one, two)) not in seen:
            seen.add(frozenset((one, two)))
            options = (
                'condim="4" friction="0.5 0.6 0.01 0.02 0.03" margin="0.02" gap="0.01"' if rng.random() < 0.5 else ""
            )
            options += ' solreffriction="0.03 0.9"' if rng.random() < 0.5 else ""
            extra += f'<pair geom1="{one}" geom2="{two}" {options}/>'
    flags = "".join(f'{flag}="disable" ' for flag in ("filterparent", "midphase") if rng.random() < 0.2)
    return f"<mujoco><option><flag {flags}/></option><worldbody>{world}</worldbody><contact>{extra}</contact></mujoco>"


@pytest.mark.parametrize("seed", range(60))
def test_pairs_and_their_parameters_are_those_of_mujocos_contacts_in_its_order(seed):
    mj, data = compiled(random_model(seed))
    found = candidates(mj)
    assert np.stack([found.geom1, found.geom2], axis=-1).tolist() == data.contact.geom.tolist()
    values = contact_parameters(mj, found)
    assert values["condim"].tolist() == data.contact.dim.tolist()
    for name in ("friction", "solref", "solreffriction", "solimp"):
        np.testing.assert_allclose(values[name], getattr(data.contact, name), rtol=1e-15, atol=0)
    np.testing.assert_allclose(values["margin"], data.contact.includemargin, rtol=1e-15, atol=0)


def test_pair_tables_hold_the_parameters_row_by_row():
    mj, data = compiled(random_model(3))
    out: dict = {}
    lower_collision(mj, out)
    n = out["npair"]
    assert n == data.ncon > 5
    np.testing.assert_allclose(out["pair_friction"].reshape(n, 5), data.contact.friction)
    np.testing.assert_allclose(out["pair_solref"].reshape(n, 2), data.contact.solref)
    np.testing.assert_allclose(out["pair_solimp"].reshape(n, 5), data.contact.solimp)
    np.testing.assert_allclose(out["pair_reach"], out["pair_margin"] + out["pair_gap"])
    assert (out["pair_bound"] >= out["pair_reach"]).all()


@pytest.mark.parametrize("flag", ["contact", "constraint"])
def test_no_pairs_where_contacts_are_disabled(flag):
    mj, _ = compiled(
        f'<mujoco><option><flag {flag}="disable"/></option><worldbody><geom size="1"/>'
        '<body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    )
    assert len(candidates(mj)) == 0


def test_pairs_that_are_not_simulated_are_named_with_their_types_and_geoms():
    mj, _ = compiled(
        "<mujoco><worldbody>"
        '<body name="can"><freejoint/><geom name="tin" type="cylinder" size=".1 .1"/></body>'
        '<body><freejoint/><geom name="egg" type="ellipsoid" size=".1 .2 .3"/></body>'
        '<body name="box"><freejoint/><geom type="box" size=".1 .2 .3"/></body>'
        '<body><freejoint/><geom name="ghost" type="cylinder" size=".1 .1" contype="0" conaffinity="0"/></body>'
        "</worldbody></mujoco>"
    )
    assert unsupported_pairs(mj) == [
        'contacts between ellipsoid and cylinder geoms are not simulated: "egg" and "tin"',
        'contacts between ellipsoid and box geoms are not simulated: "egg" and geom 2 of body "box"',
        'contacts between cylinder and box geoms are not simulated: "tin" and geom 2 of body "box"',
    ]
    out: dict = {}
    lower_collision(mj, out)
    assert out["npair"] == 0


def test_a_long_list_of_pairs_that_are_not_simulated_is_one_sentence_per_combination_of_types():
    cans = "".join(f'<body><freejoint/><geom name="can{k}" type="cylinder" size=".1 .1"/></body>' for k in range(4))
    mj, _ = compiled(f"<mujoco><worldbody>{cans}</worldbody></mujoco>")
    assert unsupported_pairs(mj) == [
        'contacts between cylinder and cylinder geoms are not simulated: "can0" and "can1" and 5 more pairs'
    ]


def test_types_that_mujoco_itself_does_not_collide_are_not_reported():
    mj, data = compiled(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/>'
        '<body mocap="true"><geom type="plane" size="1 1 1"/></body>'
        '<body><freejoint/><geom type="sphere" size=".1"/></body></worldbody></mujoco>'
    )
    assert unsupported_pairs(mj) == []
    assert candidates(mj).geom1.tolist() == [0, 1]
    assert candidates(mj).geom2.tolist() == [2, 2]
    assert data.ncon == 2
