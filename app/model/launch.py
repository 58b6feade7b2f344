"""What the command line asks of the window."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Launch(BaseModel):
    """None = what the settings or the scene file say."""

    scene: str | None = None
    devices: tuple[str, ...] | None = None
    n_envs: int | None = Field(None, ge=1)
    precision: Literal["32", "64"] | None = None
    seed: int | None = None
    env_spacing: tuple[float, float] | None = None
    theme: Literal["dark", "light"] | None = None
    size: tuple[int, int] | None = None
    screenshot: str | None = None  # file; the window closes afterwards
    after: float = Field(2.0, ge=0)  # [s] from the moment the scene runs
    show: str | None = None  # selection of environments
