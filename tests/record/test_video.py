"""Videos: exact times, readable after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import av
import numpy as np
import pytest

from genesis_core.errors import RecordingError
from genesis_core.record.video import VideoWriter, save_picture

W, H = 64, 48


def _picture(k: int) -> np.ndarray:
    """Brightness tells which frame it is."""
    return np.full((H, W, 3), 20 + 2 * k, np.uint8)


def _decoded(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def test_frames_come_back_in_order_at_their_times(tmp_path: Path) -> None:
    video = VideoWriter(tmp_path / "v.mp4", W, H, 30)
    for k in range(90):
        video.add(_picture(k))
    video.close()
    video.close()
    frames = _decoded(tmp_path / "v.mp4")
    assert len(frames) == video.frames == 90
    assert [f.time for f in frames] == pytest.approx([k / 30 for k in range(90)])
    levels = [f.to_ndarray(format="rgb24").mean() for f in frames]
    assert levels == pytest.approx([20 + 2 * k for k in range(90)], abs=3)
    with av.open(str(tmp_path / "v.mp4")) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264" and stream.codec_context.pix_fmt == "yuv420p"
        assert float(container.duration / av.time_base) == pytest.approx(3.0, abs=0.05)


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[2])
from test_video import H, W, _picture
from genesis_core.record.video import VideoWriter
from pathlib import Path
video = VideoWriter(Path(sys.argv[1]), W, H, 30)
for k in range(100):
    video.add(_picture(k))
print("go", flush=True)
time.sleep(100)
"""


def test_a_video_whose_writer_is_killed_plays_up_to_the_last_second(tmp_path: Path) -> None:
    path, script = tmp_path / "v.mp4", tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    writer = subprocess.Popen(
        [sys.executable, str(script), str(path), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "go\n"
    writer.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    writer.wait()
    frames = _decoded(path)
    assert len(frames) >= 60
    assert frames[40].to_ndarray(format="rgb24").mean() == pytest.approx(100, abs=3)


def test_odd_sizes_and_wrong_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="even"):
        VideoWriter(tmp_path / "v.mp4", 63, 48, 30)
    video = VideoWriter(tmp_path / "v.mp4", W, H, 30)
    with pytest.raises(RecordingError, match="picture of"):
        video.add(np.zeros((H, W + 2, 3), np.uint8))
    video.add(_picture(0))
    video.close()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "v.mp4").mkdir()
    with pytest.raises(RecordingError, match=r"cannot be written") as error:
        VideoWriter(tmp_path / "v.mp4", W, H, 30)
    assert "v.mp4" in str(error.value)


def test_a_picture_is_written_whole(tmp_path: Path) -> None:
    from PIL import Image

    save_picture(tmp_path / "p.png", _picture(3))
    assert (np.asarray(Image.open(tmp_path / "p.png")) == 26).all()
    assert [p.name for p in tmp_path.iterdir()] == ["p.png"]
