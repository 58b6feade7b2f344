"""Windows under test: settings of their own, and a display."""

from __future__ import annotations

from pathlib import Path

import pytest
from window_tools import load_bundle

from app.model.intents import Intents
from app.model.settings import Settings
from app.model.state import AppState
from genesis_core.layout.scene import SceneBundle

MJCF = """
<mujoco model="tiny">
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="ball" pos="0 0 .5"><freejoint/><geom type="sphere" size=".3" mass="1" rgba="1 0 0 1"/></body>
    <body name="arm" pos="1 0 1">
      <joint name="swing" type="hinge" axis="0 1 0" range="-1 1" limited="true"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor name="swing" joint="swing" ctrlrange="-10 10" ctrllimited="true"/></actuator>
</mujoco>
"""


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test reads or writes the user's settings."""
    monkeypatch.setenv("GENESIS_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture(autouse=True)
def _skip_without_gl(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gl"):
        reason = request.getfixturevalue("display")
        if reason:
            pytest.skip(reason)


@pytest.fixture(scope="session")
def qapp_args(display: str) -> list[str]:
    """Asked by pytest-qt before it makes the application: by then there is a display."""
    return ["genesis-studio-test"]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scene") / "tiny.xml"
    path.write_text(MJCF)
    return path


@pytest.fixture(scope="session")
def bundle(tiny: Path) -> SceneBundle:
    return load_bundle(tiny)


@pytest.fixture
def state() -> AppState:
    return AppState(Settings())


@pytest.fixture
def intents() -> Intents:
    return Intents()
