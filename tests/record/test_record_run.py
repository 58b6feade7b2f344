"""Record mode from the command line to the files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import av
import numpy as np
import psutil
import pytest
from cli_tools import LIMIT, command, environment, studio
from PIL import Image

from genesis_core.record.recording import RecordingReader

pytestmark = [pytest.mark.gl, pytest.mark.slow]
G, DT = 9.81, 0.01


def _frames(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


@pytest.fixture(scope="module")
def made(drop: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A recording by two workers: environments 4, 0 and 5 of 6, 40 steps."""
    out = tmp_path_factory.mktemp("out")
    done = studio(
        *("record", drop, "--envs", "6", "--steps", "40", "--select", "4,0,5", "--devices", "cpu:2"),
        *("--size", "320x240", "--out", out, "--json", "--camera", "side"),
    )
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


def test_it_writes_a_video_a_picture_and_the_states(made: tuple[Path, dict]) -> None:
    out, result = made
    assert sorted(p.name for p in out.iterdir()) == ["drop.gsrec", "drop.mp4", "drop.png"]
    assert result["envs"] == [4, 0, 5] and result["n_envs"] == 6 and result["steps"] == 40
    assert result["frames"] == 12 and result["moments"] == 41 and not result["interrupted"]
    frames = _frames(out / "drop.mp4")
    assert len(frames) == 12 and (frames[0].width, frames[0].height) == (320, 240)
    assert [f.time for f in frames] == pytest.approx([k / 30 for k in range(12)])
    picture = np.asarray(Image.open(out / "drop.png"), float)
    assert np.abs(picture - frames[-1].to_ndarray(format="rgb24")).mean() < 4
    assert picture.std() > 10


def test_the_states_are_those_of_the_simulation(made: tuple[Path, dict]) -> None:
    reader = RecordingReader(made[0] / "drop.gsrec")
    assert reader.envs == [4, 0, 5] or sorted(reader.envs) == [0, 4, 5]
    n = np.arange(41)
    assert reader.times == pytest.approx(n * DT)
    height = 1.5 - G * DT**2 * n * (n + 1) / 2
    assert reader.states()["qpos"][:, :, 2] == pytest.approx(np.repeat(height[:, None], 3, axis=1), abs=1e-4)
    assert reader.meta.complete and reader.meta.devices == ["cpu:0", "cpu:1"]
    assert (reader.folder / "scene" / "drop.xml").read_text() == reader.scene.read_text()


def test_the_video_shows_the_ball_falling(made: tuple[Path, dict]) -> None:
    def middle(frame: av.VideoFrame) -> float:
        picture = frame.to_ndarray(format="rgb24").astype(int)
        orange = (picture[..., 0] > 120) & (picture[..., 2] < 90) & (picture[..., 0] > picture[..., 1] + 50)
        assert orange.sum() > 50
        return float(np.nonzero(orange)[0].mean())

    frames = _frames(made[0] / "drop.mp4")
    heights = [middle(frames[k]) for k in (0, 4, 8, 11)]
    assert heights == sorted(heights) and heights[-1] - heights[0] > 10


def test_a_recording_can_be_drawn_again_and_gives_the_same_pictures(made: tuple[Path, dict], tmp_path: Path) -> None:
    out, _ = made
    done = studio("play", out / "drop.gsrec", "--video", tmp_path / "again.mp4", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["moments"] == 41 and facts["video"]["frames"] == 12
    for one, two in zip(_frames(out / "drop.mp4"), _frames(tmp_path / "again.mp4"), strict=True):
        a, b = (f.to_ndarray(format="rgb24").astype(float) for f in (one, two))
        if sorted(facts["recorded_envs"]) == facts["recorded_envs"]:
            assert np.abs(a - b).mean() < 3


def test_play_says_what_a_recording_holds(made: tuple[Path, dict]) -> None:
    done = studio("play", made[0] / "drop.gsrec")
    assert done.returncode == 0
    assert "complete" in done.stdout and "41 moments" in done.stdout


def test_existing_files_are_not_overwritten_without_force(made: tuple[Path, dict], drop: Path) -> None:
    before = (made[0] / "drop.mp4").read_bytes()
    done = studio("record", drop, "--steps", "2", "--out", made[0])
    assert done.returncode == 2 and "exists already" in done.stderr and "--force" in done.stderr
    assert (made[0] / "drop.mp4").read_bytes() == before


def test_a_camera_on_a_body_follows_it(drop: Path, tmp_path: Path) -> None:
    done = studio(
        *("record", drop, "--envs", "1", "--steps", "30", "--select", "0", "--no-states", "--camera", "rider"),
        *("--size", "160x120", "--out", tmp_path),
    )
    assert done.returncode == 0, done.stderr
    frames = [f.to_ndarray(format="rgb24").astype(int) for f in _frames(tmp_path / "drop.mp4")]
    rows = [np.nonzero((p[..., 0] > 120) & (p[..., 0] > p[..., 1] + 50))[0].mean() for p in (frames[0], frames[-1])]
    assert rows[0] == pytest.approx(rows[1], abs=3)  # it falls 0.4 m, a third of the picture, with its camera


def test_the_world_layout_has_all_environments_in_one_picture(drop: Path, tmp_path: Path) -> None:
    done = studio(
        *("record", drop, "--envs", "9", "--steps", "1", "--select", "all", "--layout", "world", "--no-states"),
        *("--size", "320x240", "--spacing", "1.5", "--out", tmp_path),
    )
    assert done.returncode == 0, done.stderr
    picture = np.asarray(Image.open(tmp_path / "drop.png")).astype(int)
    orange = (picture[..., 0] > 120) & (picture[..., 0] > picture[..., 1] + 50)
    columns = orange.any(axis=0).astype(int)
    assert (np.diff(columns) == 1).sum() >= 3  # balls beside each other
    assert not orange[:, [0, -1]].any()


def test_without_video_opengl_is_never_loaded(drop: Path, tmp_path: Path) -> None:
    poison = tmp_path / "poison"
    for package in ("OpenGL", "vispy", "av"):
        (poison / package).mkdir(parents=True)
        (poison / package / "__init__.py").write_text("raise RuntimeError('loaded ' + __name__)")
    path = os.pathsep.join([str(poison), os.environ.get("PYTHONPATH", "")])
    done = studio(
        *("record", drop, "--envs", "2", "--steps", "5", "--no-video", "--out", tmp_path / "o"), PYTHONPATH=path
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["drop.gsrec"]


def _wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + LIMIT
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _start(drop: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("record", drop, "--envs", "2", "--steps", "1000000", "--size", "64x48", "--out", out, *more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )


def _first_chunk(out: Path) -> Path:
    return out / "drop.gsrec" / "worker-0" / "qpos" / "c" / "2" / "0" / "0"


def test_ctrl_c_finishes_the_files_and_exits_130(drop: Path, tmp_path: Path) -> None:
    process = _start(drop, tmp_path)
    try:
        _wait_for(_first_chunk(tmp_path), process)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err and "interrupted after" in out
    reader = RecordingReader(tmp_path / "drop.gsrec")
    assert reader.meta.interrupted and not reader.meta.complete and reader.length > 64
    frames = _frames(tmp_path / "drop.mp4")
    assert len(frames) >= 10 and (tmp_path / "drop.png").exists()


def test_after_kill_9_video_and_states_are_readable_and_no_process_is_left(drop: Path, tmp_path: Path) -> None:
    process = _start(drop, tmp_path)
    try:
        _wait_for(_first_chunk(tmp_path), process)
        time.sleep(1.0)
        family = [p.pid for p in psutil.Process(process.pid).children(recursive=True)]
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 5
    while any(psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE for p in family):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    reader = RecordingReader(tmp_path / "drop.gsrec")
    assert reader.length >= 3 * 64 and reader.length % 64 == 0 and np.isfinite(reader.states()["qpos"]).all()
    assert len(_frames(tmp_path / "drop.mp4")) >= 30
    done = studio("play", tmp_path / "drop.gsrec")
    assert done.returncode == 0 and "cut off" in done.stdout


def test_a_killed_worker_ends_the_recording_with_what_there_is(drop: Path, tmp_path: Path) -> None:
    process = _start(drop, tmp_path, "--no-video")
    try:
        _wait_for(_first_chunk(tmp_path), process)
        workers = [p for p in psutil.Process(process.pid).children() if "spawn_main" in " ".join(p.cmdline())]
        assert len(workers) == 1
        workers[0].kill()
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "SIGKILL" in err and "log" in err and "Traceback" not in err
    assert RecordingReader(tmp_path / "drop.gsrec").length >= 3 * 64
