"""The window from the command line: `python -m app [SCENE]`.

Nothing of Qt is imported on the module's level: worker processes import this module again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.model.launch import Launch

NO_DISPLAY = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, 1 when a screenshot's scene did not run, 2 for a user's mistake, 3 without a display."""
    parser = _parser()
    args = parser.parse_args(argv)
    from app.model.launch import Launch
    from genesis_core.backend.resolve import resolve_devices
    from genesis_core.errors import GenesisError

    try:
        devices = resolve_devices(args.devices, args.backend) if args.devices else None
    except GenesisError as error:
        print(f"genesis-studio: {error}", file=sys.stderr)  # noqa: T201
        return 2
    launch = Launch(
        scene=_scene_file(args.scene), devices=devices, n_envs=args.envs, precision=args.precision, seed=args.seed,
        theme=args.theme, size=args.size, screenshot=args.screenshot, after=args.after, show=args.show,
    )  # fmt: skip
    return _run(launch)


def open_window(
    scene: str | None,
    *,
    devices: tuple[str, ...] | None = None,
    n_envs: int | None = None,
    precision: str | None = None,
    seed: int | None = None,
    env_spacing: tuple[float, float] | None = None,
) -> int:
    """What the `genesis-studio` command calls with arguments that are checked already."""
    from app.model.launch import Launch

    return _run(
        Launch(
            scene=scene, devices=devices, n_envs=n_envs, precision="64" if precision == "64" else precision and "32",
            seed=seed, env_spacing=env_spacing,
        )
    )  # fmt: skip


def _run(launch: Launch) -> int:
    from app.startup import platform

    platform.prepare()
    reason = platform.why_no_display()
    if reason:
        print(f"genesis-studio: no window can be opened: {reason}", file=sys.stderr)  # noqa: T201
        return NO_DISPLAY
    from app.startup.compose import run

    return run(launch)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m app", description="Genesis Studio's window")
    parser.add_argument("scene", nargs="?", help="a bundled scene's name or a file: .xml .urdf .toml .zip or a mesh")
    parser.add_argument("--envs", type=_positive, metavar="N", help="environments of all workers together")
    parser.add_argument("--backend", default="auto", help="auto, cpu, cuda or metal")
    parser.add_argument("--devices", metavar="D", help="cpu, or cpu:N for N worker processes")
    parser.add_argument("--precision", choices=("32", "64"))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--show", metavar="SELECT", help="environments to show: first:16, 0,5, random:4, all")
    parser.add_argument("--theme", choices=("dark", "light"))
    parser.add_argument("--size", type=_size, metavar="WxH", help="of the window, pixels")
    parser.add_argument("--screenshot", metavar="FILE", help="save a picture of the window and quit")
    parser.add_argument("--after", type=float, default=2.0, metavar="S", help="seconds the scene runs before it (2)")
    return parser


def _scene_file(scene: str | None) -> str | None:
    """A bundled scene's file for its name; anything else is taken as a path."""
    from resources import list_scenes, scene_path

    if scene in list_scenes() and not Path(scene).exists():
        return str(scene_path(scene))
    return scene


def _positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1 << 20:
        raise argparse.ArgumentTypeError(f"{value} is not from 1 to {1 << 20}")
    return value


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.lower().partition("x")
    if not (cross and width.isdecimal() and height.isdecimal() and min(int(width), int(height)) >= 100):
        raise argparse.ArgumentTypeError(f"'{text}' is no size such as 1280x800")
    return int(width), int(height)


if __name__ == "__main__":
    sys.exit(main())
