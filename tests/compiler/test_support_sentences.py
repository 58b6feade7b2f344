"""`unsupported`: every feature outside of the engine is named, nothing harmless is."""

from __future__ import annotations

import mujoco
import pytest

from genesis_core.compiler.support import unsupported

BASE = """<mujoco>{top}<worldbody>{world}<geom type="plane" size="1 1 1"/><body name="b" pos="0 0 1">
<joint name="j" {joint}/><geom name="g" size=".1" {geom}/><site name="s"/>
<body name="c"><joint name="k" axis="1 0 0"/><geom name="h" size=".1"/><site name="t" pos=".1 0 0"/></body></body>
</worldbody>{end}</mujoco>"""
MOTOR = '<actuator><motor name="m" joint="j"/></actuator>'


def sentences(top: str = "", world: str = "", joint: str = "", geom: str = "", end: str = "") -> tuple[str, ...]:
    xml = BASE.format(top=top, world=world, joint=joint, geom=geom, end=end)
    return unsupported(mujoco.MjModel.from_xml_string(xml))


SIMULATED = {
    "plain": {},
    "springs, dampers, armature, limits": {
        "joint": 'stiffness="1" damping="2" armature="3" range="-1 1" solreflimit="-3 -4" springref="1"'
    },
    "gravity compensation": {"world": '<body gravcomp="1"><freejoint/><geom size=".1"/></body>'},
    "contact parameters": {"geom": 'condim="6" margin="0.1" gap="0.01" priority="2" solmix="3" friction="1 2 3"'},
    "pairs and excludes": {
        "end": '<contact><pair geom1="g" geom2="h" condim="4"/><exclude body1="b" body2="world"/></contact>'
    },
    "motors, servos, affine": {
        "end": """<actuator><motor joint="j" ctrlrange="-1 1" forcerange="-2 2"/><position joint="j" kp="3" kv="1"/>
<velocity joint="k" kv="2"/><general joint="k" gaintype="affine" biastype="affine" gainprm="1 2 3"/></actuator>"""
    },
    "implicitfast": {"top": '<option integrator="implicitfast" impratio="2" iterations="3" tolerance="1e-3"/>'},
    "mocap": {"world": '<body mocap="true"><geom size=".1" contype="0" conaffinity="0"/></body>'},
    "keyframes": {"end": '<keyframe><key qpos="0 1"/></keyframe>'},
    # harmless:
    "a tendon that only shows": {"end": '<tendon><spatial><site site="s"/><site site="t"/></spatial></tendon>'},
    "magnetic field and wind in a vacuum": {"top": '<option magnetic="0 0 1" wind="1 2 3"/>'},
    "energy and speed flags": {
        "top": '<option><flag energy="enable" midphase="disable" warmstart="disable"/></option>'
    },
    "equality switched off": {
        "top": '<option><flag equality="disable"/></option>',
        "end": '<equality><joint joint1="j" joint2="k"/></equality>',
    },
    "friction loss switched off": {
        "top": '<option><flag frictionloss="disable"/></option>',
        "joint": 'frictionloss="1"',
    },
    "solver without constraints": {
        "top": '<option solver="CG" cone="elliptic"><flag constraint="disable"/></option>',
    },
    "sensors switched off": {
        "top": '<option><flag sensor="disable"/></option>',
        "end": '<sensor><jointpos joint="j"/></sensor>',
    },
    "numbers, texts, user data": {"end": '<custom><numeric name="n" data="1"/><text name="x" data="y"/></custom>'},
}


@pytest.mark.parametrize("case", SIMULATED)
def test_what_is_simulated_or_harmless_is_not_reported(case: str) -> None:
    assert sentences(**SIMULATED[case]) == ()


REPORTED = {
    "RK4": ({"top": '<option integrator="RK4"/>'}, "integrator RK4"),
    "implicit": ({"top": '<option integrator="implicit"/>'}, "integrator implicit is not simulated: implicitfast"),
    "discrete": ({"top": '<option integrator="discrete"/>'}, "integrator discrete"),
    "CG": ({"top": '<option solver="CG"/>'}, "solver CG"),
    "PGS": ({"top": '<option solver="PGS"/>'}, "solver PGS"),
    "elliptic cones": ({"top": '<option cone="elliptic"/>'}, "elliptic friction cones"),
    "noslip": ({"top": '<option noslip_iterations="3"/>'}, "noslip solver (3 iterations)"),
    "override": ({"top": '<option><flag override="enable"/></option>'}, "flag override"),
    "sleep": ({"top": '<option><flag sleep="enable"/></option>'}, "flag sleep"),
    "diagexact": ({"top": '<option><flag diagexact="enable"/></option>'}, "flag diagexact"),
    "speculative": ({"top": '<option><flag speculative="enable"/></option>'}, "flag speculative"),
    "friction loss": ({"joint": 'frictionloss="1"'}, "friction loss of 1 joint is not simulated (j)"),
    "equality": (
        {"end": '<equality><joint name="e" joint1="j" joint2="k"/><connect body1="b" anchor="0 0 0"/></equality>'},
        "2 equality constraints are not simulated: joint, connect (e)",
    ),
    "tendon spring": (
        {"end": '<tendon><fixed name="f" stiffness="1"><joint joint="j" coef="1"/></fixed></tendon>'},
        "1 tendon are not simulated: fixed (f)",
    ),
    "tendon limit": (
        {"end": '<tendon><spatial range="0 1"><site site="s"/><site site="t"/></spatial></tendon>'},
        "1 tendon are not simulated: spatial",
    ),
    "tendon actuator": (
        {
            "end": '<tendon><fixed name="f"><joint joint="j" coef="1"/></fixed></tendon>'
            '<actuator><motor name="pull" tendon="f"/></actuator>'
        },
        "1 actuator is not simulated: pulling on tendons (pull)",
    ),
    "site actuator": ({"end": '<actuator><motor site="s"/></actuator>'}, "acting at sites"),
    "filter": (
        {"end": '<actuator><general joint="j" dyntype="filter" dynprm="1"/></actuator>'},
        "activation dynamics filter",
    ),
    "integrator": ({"end": '<actuator><intvelocity joint="j" actrange="-1 1"/></actuator>'}, "dynamics integrator"),
    "muscle": ({"end": '<actuator><muscle name="m" joint="j" lengthrange="0 1"/></actuator>'}, "muscles (m)"),
    "delay": ({"end": '<actuator><motor joint="j" delay="0.01" nsample="5"/></actuator>'}, "with a delay"),
    "adhesion actuator": ({"end": '<actuator><adhesion body="b" ctrlrange="0 1"/></actuator>'}, "adhesion of bodies"),
    "fluid": ({"top": '<option density="1.2"/>'}, "density 1.2 kg/m^3"),
    "surface velocity": ({"geom": 'surfacevel="1 0 0 0 0 0"'}, "moving surfaces of 1 geom are not simulated (g)"),
    "adhesion": ({"geom": 'adhesion="1"'}, "adhesion of 1 geom"),
    "plastic spring": ({"joint": 'stiffness="1" springyield="2"'}, "springs that yield"),
    "sensors": (
        {"end": '<sensor><gyro site="s"/><gyro site="t"/><jointpos joint="j"/></sensor>'},
        "3 sensors are not simulated: 2 gyro, jointpos",
    ),
    "mesh contacts": (
        {
            "top": '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
            "world": '<body><freejoint/><geom name="mm" type="mesh" mesh="m"/></body>',
        },
        "contacts between",
    ),
    "flex": (
        {
            "world": '<flexcomp type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" name="cloth" dim="2"'
            ' mass="1"><edge equality="true"/></flexcomp>'
        },
        "1 flex is not simulated: deformable (cloth)",
    ),
}


@pytest.mark.parametrize("case", REPORTED)
def test_what_is_not_simulated_is_named(case: str) -> None:
    parts, words = REPORTED[case]
    found = sentences(**parts)
    assert any(words in s for s in found), found


def test_disabled_actuator_groups_are_not_reported() -> None:
    off = '<option actuatorgroupdisable="3"/>'
    end = '<actuator><motor site="s" group="3"/></actuator>'
    assert sentences(top=off, end=end) == ()
    assert len(sentences(end=end)) == 1


def test_many_names_are_shortened() -> None:
    end = "<equality>" + "".join(f'<joint name="e{i}" joint1="j"/>' for i in range(9)) + "</equality>"
    assert sentences(end=end) == ("9 equality constraints are not simulated: 9 joint (e0, e1, e2, e3 and 5 more)",)


def test_every_enable_flag_and_integrator_of_this_mujoco_was_looked_at() -> None:
    enable = {k for k in mujoco.mjtEnableBit.__members__ if k.startswith("mjENBL_")}
    harmless = {"mjENBL_ENERGY", "mjENBL_FWDINV", "mjENBL_INVDISCRETE"}
    reported = {f"mjENBL_{n}" for n in ("OVERRIDE", "SLEEP", "DIAGEXACT", "IPC", "SPECULATIVE")}
    assert enable == harmless | reported, "a new flag: decide whether it changes the motion, then list it"
    assert len(mujoco.mjtIntegrator.__members__) == 5
    assert len(mujoco.mjtTrn.__members__) == 8
    assert len(mujoco.mjtDyn.__members__) == 8
