"""A small scene for recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

SCENE = """
<mujoco model="drop">
  <option timestep="0.01"/>
  <visual><headlight ambient=".4 .4 .4"/></visual>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1"/>
    <camera name="side" pos="0 -3 1" xyaxes="1 0 0 0 0 1"/>
    <geom type="plane" size="2 2 .1" rgba=".2 .3 .4 1"/>
    <body name="ball" pos="0 0 1.5"><freejoint/>
      <camera name="rider" pos="0 -1 .3" xyaxes="1 0 0 0 0.3 1" mode="track"/>
      <geom type="sphere" size=".2" mass="1" rgba=".9 .3 .1 1"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="session")
def drop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A falling ball; step 0.01 s."""
    path = tmp_path_factory.mktemp("drop") / "drop.xml"
    path.write_text(SCENE)
    return path
