"""Model: a compiled scene, ready to be simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco

from genesis_core.compiler.lower import lower, sizes_of

NAMED = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "key": mujoco.mjtObj.mjOBJ_KEY,
}
COUNT = {"body": "nbody", "joint": "njnt", "geom": "ngeom", "site": "nsite", "actuator": "nu", "key": "nkey"}


class Model:
    """Constants of a scene: what every environment shares.

    arrays: every field of `layout.fields.MODEL_FIELDS`; sizes: every integer that shapes are made of; names: lists of
    names by kind ("body", "joint", "geom", "site", "actuator", "key"; "" where an element has none); unsupported:
    sentences about features of the file that are not simulated (empty = all is); mj: the `mujoco.MjModel` it was made
    from.
    """

    def __init__(self, mj: mujoco.MjModel, *, source: str = "") -> None:
        self.mj = mj
        self.source = source
        self.arrays: dict[str, Any] = lower(mj)
        self.sizes = sizes_of(mj, self.arrays)
        self.names = {
            kind: [mujoco.mj_id2name(mj, obj, k) or "" for k in range(getattr(mj, COUNT[kind]))]
            for kind, obj in NAMED.items()
        }
        self.nq, self.nv, self.nu, self.na = int(mj.nq), int(mj.nv), int(mj.nu), int(mj.na)
        self.nbody, self.njnt, self.ngeom, self.nsite = int(mj.nbody), int(mj.njnt), int(mj.ngeom), int(mj.nsite)
        self.nmocap, self.nkey = int(mj.nmocap), int(mj.nkey)
        self.opt = mj.opt
        self.timestep = float(mj.opt.timestep)

    @classmethod
    def from_mujoco(cls, mj: mujoco.MjModel) -> Model:
        """A model from an already compiled `mujoco.MjModel`."""
        return cls(mj)

    @classmethod
    def from_file(cls, path: str | Path) -> Model:
        """A model from MJCF (.xml), URDF, .zip/.mjz or a scene file; SceneError names file, line and element."""
        from genesis_core.compiler.load import load_scene

        return load_scene(path).model

    @property
    def unsupported(self) -> tuple[str, ...]:
        """One sentence per feature of the file that is not simulated."""
        from genesis_core.compiler.support import unsupported

        return tuple(unsupported(self.mj))
