"""Small programs that try one path each, and what runs them: in a process of their own, with a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import msgspec

KERNEL = """
from genesis_core.engine import Model, Simulation
from genesis_core.compiler.load import load_scene
import numpy as np
import os
from resources import scene_path
backend = "cuda" if os.environ.get("GENESIS_WORKER", "").startswith(("cuda", "MIG")) else "cpu"
sim = Simulation(load_scene(scene_path("cartpole")).model, n_envs=2, backend=backend)
sim.step(5)
qpos = sim.get("qpos")
assert np.isfinite(qpos).all(), qpos
print(f"5 steps of 2 environments, time {sim.get('time')[0]:.3f} s")
"""

PICTURE = """
from genesis_core.render.platform import prepare
prepare()
from genesis_core.compiler.load import load_scene
from genesis_core.render.camera import Camera
from genesis_core.render.offscreen import OffscreenRenderer
from genesis_core.render.egl import describe_context
from genesis_core.layout.scene import initial_rows
from resources import scene_path
import numpy as np
bundle = load_scene(scene_path("cartpole")).bundle
renderer = OffscreenRenderer(bundle, 64, 48)
camera = Camera()
camera.frame(bundle.stat_center, bundle.stat_extent)
picture = renderer.render(camera, initial_rows(bundle)[None], np.zeros((1, 3)))
assert picture.shape == (48, 64, 3) and picture.std() > 1, "the picture is empty"
print(describe_context())
renderer.close()
"""

TORCH = """
import os
import torch
device = "cuda" if os.environ.get("GENESIS_WORKER", "").startswith(("cuda", "MIG")) else "cpu"
x = torch.arange(6.0, device=device).reshape(2, 3)
assert (x @ x.T)[1, 1].item() == 50.0
where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
print(f"torch {torch.__version__}, {where}")
"""

ENCODER = """
import io
import av, numpy as np
out = av.open(io.BytesIO(), "w", format="mp4")
stream = out.add_stream("libx264", rate=30)
stream.width = stream.height = 64
stream.pix_fmt = "yuv420p"
packets = sum(len(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), i, np.uint8)))) for i in range(3))
packets += len(stream.encode())
out.close()
assert packets == 3, packets
print(f"H.264 by PyAV {av.__version__}")
"""

WINDOW = """
import os, sys
from app.startup.platform import prepare
prepare()
from PySide6.QtWidgets import QApplication
app = QApplication(sys.argv[:1])
screen = app.primaryScreen()
print(f"{app.platformName()}, {screen.size().width()}x{screen.size().height()}")
"""

CHOICE = """
import os
from genesis_core.backend.choice import choose
from genesis_core.backend.devices import read_machine
from genesis_core.render.egl import list_egl_devices
try:
    draw = list_egl_devices()
except Exception:
    draw = None
machine, _ = read_machine(draw)
choice = choose(os.environ, machine)
said = [f"{choice.gpu} as cuda:{choice.ordinal}" if choice.gpu else choice.backend]
said += [f"drawing on EGL {choice.draw.index} ({choice.draw.name})"] if choice.draw else []
said += [text for text in (choice.fallback, choice.draw_fallback, *choice.notes) if text]
print("; ".join(said))
"""

GPUS = """
import json
from genesis_core.backend.devices import cuda_devices
notes = []
found = cuda_devices(notes)
import msgspec
print(msgspec.json.encode({"devices": found, "notes": notes}).decode())
"""

# Runs the program in argv[1]; our own errors come back in two parts, what and hint.
_RUNNER = """
import sys
try:
    exec(compile(sys.argv[1], "<check>", "exec"), {"__name__": "__main__"})
except Exception as error:
    import json, traceback
    traceback.print_exc()
    what = getattr(error, "what", "") or f"{type(error).__name__}: {error}"
    print("\\n" + json.dumps({"what": what, "hint": getattr(error, "hint", "")}), file=sys.stderr)
    sys.exit(3)
"""


class Outcome(msgspec.Struct):
    """What a program said last, or why it did not work and the hint that came with the error."""

    worked: bool
    said: str
    hint: str = ""


def probe(code: str, limit: float, environment: Mapping[str, str | None] | None = None) -> Outcome:
    """Runs Python code in a process of its own with changed variables (None = without it)."""
    env = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _RUNNER, code],
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env={k: v for k, v in env.items() if v is not None},
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, f"no answer within {limit:.0f} s", "a driver that hangs: see dmesg; restart the machine")
    if done.returncode == 0:
        return Outcome(True, (done.stdout.strip().splitlines() or [""])[-1])
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    if done.returncode < 0:
        return Outcome(False, f"killed by signal {-done.returncode}" + (f": {lines[-1]}" if lines else ""))
    try:
        told = msgspec.json.decode(lines[-1])
        return Outcome(False, told["what"].splitlines()[0], told["hint"])
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        return Outcome(False, lines[-1] if lines else f"exit code {done.returncode}")
