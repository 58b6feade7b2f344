"""Video files: H.264 in fragmented MP4, which plays up to the last fragment after a kill; and PNG pictures."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.error import FFmpegError

from genesis_core.errors import RecordingError
from genesis_core.record.recording import disk_errors

CODECS = ("libx264", "h264")
# Fragments begin at key frames (one a second); without B-frames and with a short look-ahead, what was given to the
# encoder is on disk a second later.
_MUXER = {"movflags": "+frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1"}
_ENCODER = {"preset": "veryfast", "crf": "20", "bf": "0", "rc-lookahead": "10", "tune": "fastdecode"}


class VideoWriter:
    """Writes pictures of one size as a video; picture k is shown at k / fps seconds."""

    def __init__(self, path: Path, width: int, height: int, fps: int) -> None:
        """width, height: even numbers of pixels (H.264 with 4:2:0 colours)."""
        if width % 2 or height % 2:
            raise RecordingError(f"{width}x{height} pixels: H.264 needs even numbers", hint="choose an even --size")
        self.path = path
        self.frames = 0
        self._size = (height, width, 3)
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._container = av.open(os.fspath(path), "w", format="mp4", options=_MUXER)
            stream = self._container.add_stream(_codec(), rate=fps, options=_ENCODER)
            assert isinstance(stream, av.VideoStream)
            self._stream = stream
            self._stream.width, self._stream.height = width, height
            self._stream.pix_fmt = "yuv420p"
            self._stream.codec_context.gop_size = fps
            self._stream.codec_context.time_base = Fraction(1, fps)
            self._container.start_encoding()  # opens the file: what is wrong with it should be told now
        self._fps = fps
        self._closed = False

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """FFmpeg's errors and the operating system's as RecordingError."""
        with disk_errors("the video", self.path):
            try:
                yield
            except OSError:
                raise
            except FFmpegError as error:
                raise OSError(error.errno or errno.EIO, error.strerror or str(error)) from None

    def add(self, picture: np.ndarray) -> None:
        """The next picture, (height, width, 3) uint8 RGB, first row at the top."""
        if picture.shape != self._size or picture.dtype != np.uint8:
            raise RecordingError(f"a picture of {picture.shape} {picture.dtype}, want {self._size} uint8")
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        frame.pts = self.frames
        frame.time_base = Fraction(1, self._fps)
        with self._errors():
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        self.frames += 1

    def close(self) -> None:
        """Writes what the encoder still holds. May be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            with self._errors():
                for packet in self._stream.encode():
                    self._container.mux(packet)
        finally:
            with self._errors():
                self._container.close()

    def abandon(self) -> None:
        """Closes without caring for errors, after one was told."""
        self._closed = True
        with contextlib.suppress(Exception):
            self._container.close()


def _codec() -> str:
    for name in CODECS:
        with contextlib.suppress(av.codec.codec.UnknownCodecError):
            av.codec.Codec(name, "w")
            return name
    raise RecordingError("this build of PyAV has no H.264 encoder", hint="pip install --force-reinstall av")


def save_picture(path: Path, picture: np.ndarray) -> None:
    """A PNG file, whole or not at all."""
    from PIL import Image

    part = path.with_suffix(".partial")
    with disk_errors("the picture", path):
        Image.fromarray(picture).save(part, format="PNG")
        part.replace(path)
