"""A small scene and sessions on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from session_tools import PATIENCE, run_until

from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import Session, SessionConfig

MJCF = """
<mujoco model="tiny">
  <option timestep="0.01"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
    <body name="arm" pos="1 0 1">
      <joint name="swing" type="hinge" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor name="swing" joint="swing" gear="1" ctrlrange="-10 10" ctrllimited="true"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a falling ball and a driven hinge; step 0.01 s."""
    path = tmp_path_factory.mktemp("scene") / "tiny.xml"
    path.write_text(MJCF)
    return path


@pytest.fixture(scope="session")
def open_session(tiny: Path) -> Callable[..., Session]:
    """Makes a session that is ready to step."""

    def make(**options) -> Session:
        options = {"devices": ("cpu",), "n_envs": 6, "threads": 1, **options}
        session = Session(SessionConfig(scene=msg.SceneRequest(path=str(tiny)), **options))
        session.start()
        try:
            run_until(session, lambda: session.ready, PATIENCE)
        except BaseException:
            session.close()
            raise
        return session

    return make
