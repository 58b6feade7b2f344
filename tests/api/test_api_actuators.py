"""What becomes of a file's actuators when a script takes control."""

from __future__ import annotations

import mujoco
import numpy as np

from genesis_core.compiler.control import UNLIMITED, dof_control, replace_actuators

XML = """
<mujoco>
  <worldbody>
    <body name="a"><joint name="slide" type="slide" axis="1 0 0" actuatorfrcrange="-3 3"/><geom size="0.1" mass="2"/>
      <body name="b"><joint name="hinge" axis="0 1 0" armature="0.5"/><geom size="0.1" mass="1"/>
        <body name="c"><joint axis="0 0 1"/><geom size="0.1" mass="1"/>
          <site name="s"/>
        </body>
      </body>
    </body>
    <body name="free"><freejoint/><geom size="0.1"/></body>
    <body name="ball"><joint name="ball" type="ball"/><geom size="0.1"/></body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="slide" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="m" joint="slide" gear="4" ctrlrange="-2 2"/>
    <position name="p" joint="hinge" kp="30" kv="2" gear="2" forcerange="-5 7"/>
    <motor name="on_tendon" tendon="t"/>
    <general name="slow" joint="slide" dyntype="filter" dynprm="0.1"/>
  </actuator>
  <keyframe><key name="k" ctrl="1 2 3 4" act="0"/></keyframe>
</mujoco>
"""


def made() -> tuple[mujoco.MjModel, object, list[str]]:
    spec = mujoco.MjSpec.from_string(XML)
    warnings: list[str] = []
    said = replace_actuators(spec, warnings)
    model = spec.compile()
    return model, dof_control(model, said), warnings


def test_every_hinge_and_slide_gets_three_actuators_and_nothing_else_has_any() -> None:
    model, table, _ = made()
    assert model.nu == 9 and table.nu == 9
    assert table.actuator.tolist() == [0, 3, 6, *[-1] * 6, *[-1] * 3]
    assert table.joint[:3] == ["slide", "hinge", "c_joint"]
    data = mujoco.MjData(model)
    data.qpos[:3], data.qvel[:3] = [0.5, 0.25, -0.5], [1.0, 2.0, 3.0]
    data.ctrl[:] = [0.7, 2.0, 0.1, 1.0, 4.0, 0.5, 0.0, 3.0, 1.0]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_actuator[:3], [0.7 - 1.0 - 0.1, 1.0 - 1.0 - 1.0, 1.5 - 3.0])


def test_gains_and_ranges_follow_gear_and_limits() -> None:
    _, table, _ = made()
    assert (table.kp[1], table.kv[1]) == (30 * 4, 2 * 4)
    assert (table.lower[1], table.upper[1]) == (-10, 14)
    assert (table.lower[0], table.upper[0]) == (-3, 3), "the joint's own range is the tighter one"
    assert (table.kp[2], table.kv[2]) == (100, 10) and np.isinf(table.upper[2]) and np.isfinite(UNLIMITED)


def test_what_scripts_cannot_express_is_named() -> None:
    _, _, warnings = made()
    assert any("'on_tendon' does not act on a joint" in text for text in warnings)
    assert any("'slow' lost its activation dynamics" in text for text in warnings)
