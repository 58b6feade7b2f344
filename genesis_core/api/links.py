"""Links and joints of an entity: names, places in the state, poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genesis_core.api.constants import JOINT_TYPE

if TYPE_CHECKING:
    import torch

    from genesis_core.api.entity import RigidEntity

N_QS = {
    JOINT_TYPE.FIXED: 0,
    JOINT_TYPE.REVOLUTE: 1,
    JOINT_TYPE.PRISMATIC: 1,
    JOINT_TYPE.SPHERICAL: 4,
    JOINT_TYPE.FREE: 7,
}
N_DOFS = {
    JOINT_TYPE.FIXED: 0,
    JOINT_TYPE.REVOLUTE: 1,
    JOINT_TYPE.PRISMATIC: 1,
    JOINT_TYPE.SPHERICAL: 3,
    JOINT_TYPE.FREE: 6,
}


class Link:
    """One rigid body of an entity. idx counts over the scene, idx_local over the entity."""

    def __init__(self, entity: RigidEntity, name: str, idx_local: int, body: int, parent_idx: int) -> None:
        self.entity = entity
        self.name = name
        self.idx_local = idx_local
        self.body = body  # index of the body in the engine
        self.parent_idx = parent_idx  # -1: the world
        self.joints: list[Joint] = []

    @property
    def idx(self) -> int:
        return self.entity.link_start + self.idx_local

    @property
    def is_fixed(self) -> bool:
        """True where no joint lies between this link and the world."""
        return bool(self.entity.scene.body_is_static(self.body))

    def get_pos(self, envs_idx: Any = None) -> torch.Tensor:
        """Origin of the link's frame in the world [m], ([n_envs,] 3)."""
        return self.entity.get_links_pos([self.idx_local], envs_idx)[..., 0, :]

    def get_quat(self, envs_idx: Any = None) -> torch.Tensor:
        """Orientation w-x-y-z, ([n_envs,] 4)."""
        return self.entity.get_links_quat([self.idx_local], envs_idx)[..., 0, :]

    def get_vel(self, envs_idx: Any = None) -> torch.Tensor:
        """Velocity of the origin, world frame [m/s], ([n_envs,] 3)."""
        return self.entity.get_links_vel([self.idx_local], envs_idx)[..., 0, :]

    def get_ang(self, envs_idx: Any = None) -> torch.Tensor:
        """Angular velocity, world frame [rad/s], ([n_envs,] 3)."""
        return self.entity.get_links_ang([self.idx_local], envs_idx)[..., 0, :]

    def get_mass(self) -> float:
        """[kg]"""
        return float(self.entity.scene.engine_model.mj.body_mass[self.body])

    def __repr__(self) -> str:
        return f"<Link '{self.name}' of entity '{self.entity.name}'>"


class Joint:
    """One joint of an entity; a link that is welded to its parent has a FIXED joint of the link's name."""

    def __init__(
        self, link: Link, name: str, kind: JOINT_TYPE, idx_local: int, dof_local: int | None, q_local: int | None
    ) -> None:
        self.link = link
        self.name = name
        self.type = kind
        self.idx_local = idx_local
        self.n_dofs = N_DOFS[kind]
        self.n_qs = N_QS[kind]
        self._dof = dof_local or 0
        self._q = q_local or 0

    @property
    def entity(self) -> RigidEntity:
        return self.link.entity

    @property
    def idx(self) -> int:
        return self.entity.joint_start + self.idx_local

    @property
    def dofs_idx_local(self) -> list[int]:
        """Its degrees of freedom within the entity."""
        return list(range(self._dof, self._dof + self.n_dofs))

    @property
    def dofs_idx(self) -> list[int]:
        """Its degrees of freedom within the scene."""
        return [self.entity.dof_start + i for i in self.dofs_idx_local]

    @property
    def qs_idx_local(self) -> list[int]:
        """Its positions within the entity's qpos."""
        return list(range(self._q, self._q + self.n_qs))

    @property
    def qs_idx(self) -> list[int]:
        """Its positions within the scene's qpos."""
        return [self.entity.q_start + i for i in self.qs_idx_local]

    @property
    def dof_start(self) -> int:
        return self.entity.dof_start + self._dof

    @property
    def q_start(self) -> int:
        return self.entity.q_start + self._q

    @staticmethod
    def _single(values: list[int]) -> int | list[int] | None:
        return None if not values else values[0] if len(values) == 1 else values

    @property
    def dof_idx_local(self) -> int | list[int] | None:
        """Old name: the number itself for one dof, None for a fixed joint."""
        return self._single(self.dofs_idx_local)

    @property
    def dof_idx(self) -> int | list[int] | None:
        return self._single(self.dofs_idx)

    @property
    def q_idx_local(self) -> int | list[int] | None:
        return self._single(self.qs_idx_local)

    @property
    def q_idx(self) -> int | list[int] | None:
        return self._single(self.qs_idx)

    def __repr__(self) -> str:
        return f"<Joint '{self.name}' ({self.type.name}) of entity '{self.entity.name}'>"
