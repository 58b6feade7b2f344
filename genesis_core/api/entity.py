"""RigidEntity: what `scene.add_entity` returns. All getters give torch tensors on gs.device, always copies.

Shapes below are for a scene built with n_envs >= 1; with n_envs = 0 the leading axis is absent. Positions in metres,
angles in radians, quaternions w-x-y-z, velocities in the world frame unless said otherwise. "_local" indices count
within the entity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.api import geom
from genesis_core.api.constants import CTRL_MODE, JOINT_TYPE
from genesis_core.api.index import finite, indices, values
from genesis_core.api.links import Joint
from genesis_core.api.structure import EntityStructure
from genesis_core.errors import GenesisError, OptionError, UnsupportedFeatureError

if TYPE_CHECKING:
    import torch


class RigidEntity(EntityStructure):
    """One entity of a scene; made by `Scene.add_entity`."""

    # ------------------------------------------------------------------ indices
    def _dofs(self, index: Any) -> np.ndarray:
        self._built()
        return indices(index, self._nv, "dofs_idx_local")

    def _qs(self, index: Any) -> np.ndarray:
        self._built()
        return indices(index, self._nq, "qs_idx_local")

    def _read(self, name: str, columns: np.ndarray, envs_idx: Any) -> np.ndarray:
        """(len(envs), len(columns)) of a state array of the engine."""
        envs = self.scene.envs_read(envs_idx)
        return self.scene.engine_get(name, envs)[:, columns]

    def _write(self, name: str, columns: np.ndarray, value: np.ndarray, envs: np.ndarray) -> None:
        """Overwrite columns of a state array of the engine in some environments."""
        whole = self.scene.engine_get(name, envs)
        whole[:, columns] = value
        self.scene.engine_set(name, whole, envs)

    def _value(self, value: Any, envs: np.ndarray, columns: int, what: str, name: str) -> np.ndarray:
        rows = len(envs) if self.scene.batched else None
        return finite(values(value, rows, columns, "envs_idx", name), f"{what} of entity '{self.name}'")

    def _out(self, array: np.ndarray) -> torch.Tensor:
        return self.scene.tensor(array if self.scene.batched else array[0])

    # ------------------------------------------------------------------ positions
    def get_qpos(self, qs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Generalized positions, (n_envs, n_qs): a free joint is 3 of position and a quaternion."""
        return self._out(self._read("qpos", self._q0 + self._qs(qs_idx_local), envs_idx))

    def set_qpos(
        self,
        qpos: Any,
        qs_idx_local: Any = None,
        envs_idx: Any = None,
        *,
        zero_velocity: bool = True,
        skip_forward: bool = False,
    ) -> None:
        """Set generalized positions; quaternions are normalized. All dof velocities of the entity become zero unless
        zero_velocity=False. skip_forward is accepted: getters always reflect the current state."""
        columns, envs = self._qs(qs_idx_local), self.scene.envs_write(envs_idx)
        self._write("qpos", self._q0 + columns, self._value(qpos, envs, len(columns), "qpos", "qs_idx"), envs)
        self._after_pose(envs, zero_velocity)

    def _after_pose(self, envs: np.ndarray, zero_velocity: bool) -> None:
        for joint in self._joints:
            if joint.type in (JOINT_TYPE.FREE, JOINT_TYPE.SPHERICAL):
                at = self._q0 + np.asarray(joint.qs_idx_local[-4:])
                quat = self.scene.engine_get("qpos", envs)[:, at]
                length = np.linalg.norm(quat, axis=-1, keepdims=True)
                if (length < 1e-9).any():
                    raise OptionError(f"the quaternion of joint '{joint.name}' has no length")
                if (np.abs(length - 1) > 1e-7).any():
                    self._write("qpos", at, quat / length, envs)
        if zero_velocity:
            self.zero_all_dofs_velocity(envs if self.scene.batched else None)

    def get_dofs_position(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Positions of dofs, (n_envs, n_dofs): a free joint gives position and x-y-z Euler angles [rad], a ball joint
        its Euler angles."""
        columns = self._dofs(dofs_idx_local)
        return self._out(self._dof_positions(self.scene.envs_read(envs_idx))[:, columns])

    def _dof_positions(self, envs: np.ndarray) -> np.ndarray:
        qpos = self.scene.engine_get("qpos", envs)[:, self._q0 : self._q0 + self._nq]
        out = np.zeros((len(envs), self._nv), dtype=qpos.dtype)
        for joint in self._joints:
            qs, dofs = joint.qs_idx_local, joint.dofs_idx_local
            if joint.type in (JOINT_TYPE.REVOLUTE, JOINT_TYPE.PRISMATIC):
                out[:, dofs[0]] = qpos[:, qs[0]]
            elif joint.type is not JOINT_TYPE.FIXED:
                out[:, dofs[:-3]] = qpos[:, qs[:-4]]
                out[:, dofs[-3:]] = geom.quat_to_xyz(qpos[:, qs[-4:]], rpy=True)
        return out

    def set_dofs_position(
        self, position: Any, dofs_idx_local: Any = None, envs_idx: Any = None, *, zero_velocity: bool = True
    ) -> None:
        """Set positions of dofs (see get_dofs_position). All dof velocities of the entity become zero unless
        zero_velocity=False."""
        columns, envs = self._dofs(dofs_idx_local), self.scene.envs_write(envs_idx)
        value = self._value(position, envs, len(columns), "position", "dofs_idx")
        dofs = self._dof_positions(envs).astype(np.float64)
        dofs[:, columns] = value
        touched = set(columns.tolist())
        qpos = self.scene.engine_get("qpos", envs)
        for joint in self._joints:
            qs, own = np.asarray(joint.qs_idx_local, dtype=int) + self._q0, joint.dofs_idx_local
            if not touched.intersection(own):
                continue
            if joint.type in (JOINT_TYPE.REVOLUTE, JOINT_TYPE.PRISMATIC):
                qpos[:, qs[0]] = dofs[:, own[0]]
            else:
                qpos[:, qs[:-4]] = dofs[:, own[:-3]]
                if touched.intersection(own[-3:]):
                    qpos[:, qs[-4:]] = geom.xyz_to_quat(dofs[:, own[-3:]], rpy=True)
        self.scene.engine_set("qpos", qpos, envs)
        self._after_pose(envs, zero_velocity)

    # ------------------------------------------------------------------ velocities
    def get_dofs_velocity(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Velocities of dofs, (n_envs, n_dofs); a free joint: linear in the world frame, angular in the body frame."""
        return self._out(self._read("qvel", self._v0 + self._dofs(dofs_idx_local), envs_idx))

    def set_dofs_velocity(self, velocity: Any = None, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Set velocities of dofs (None: zero)."""
        columns, envs = self._dofs(dofs_idx_local), self.scene.envs_write(envs_idx)
        given = 0.0 if velocity is None else velocity
        self._write("qvel", self._v0 + columns, self._value(given, envs, len(columns), "velocity", "dofs_idx"), envs)

    def zero_all_dofs_velocity(self, envs_idx: Any = None) -> None:
        """Stop the entity."""
        if self._nv:
            self.set_dofs_velocity(None, None, envs_idx)

    def get_dofs_acc(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Accelerations of dofs in the last step, (n_envs, n_dofs)."""
        return self._out(self._read("qacc", self._v0 + self._dofs(dofs_idx_local), envs_idx))

    def get_dofs_force(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Total generalized force of the last step (actuators, passive, applied, constraints, minus bias)."""
        columns = self._v0 + self._dofs(dofs_idx_local)
        parts = ("qfrc_actuator", "qfrc_passive", "qfrc_applied", "qfrc_constraint")
        total = sum(self._read(name, columns, envs_idx) for name in parts)
        return self._out(np.asarray(total - self._read("qfrc_bias", columns, envs_idx)))

    # ------------------------------------------------------------------ base link and links
    def _base_read(self, name: str, part: slice, envs_idx: Any) -> np.ndarray | None:
        """Columns of a floating base's own joint, None where the base does not float.

        The pose and velocity of such a link are coordinates of the state: no kinematics has to be run for them.
        """
        self._built()
        joint = self._joints[0]
        if joint.type is not JOINT_TYPE.FREE:
            return None
        first = self._q0 if name == "qpos" else self._v0
        width = joint.n_qs if name == "qpos" else joint.n_dofs
        return self._read(name, first + np.arange(width)[part], envs_idx)

    def get_pos(self, envs_idx: Any = None) -> torch.Tensor:
        """Origin of the base link, (n_envs, 3)."""
        own = self._base_read("qpos", slice(0, 3), envs_idx)
        return self.get_links_pos([0], envs_idx)[..., 0, :] if own is None else self._out(own)

    def get_quat(self, envs_idx: Any = None) -> torch.Tensor:
        """Orientation of the base link, (n_envs, 4)."""
        own = self._base_read("qpos", slice(3, 7), envs_idx)
        if own is None:
            return self.get_links_quat([0], envs_idx)[..., 0, :]
        return self._out(own / np.linalg.norm(own, axis=-1, keepdims=True))

    def get_vel(self, envs_idx: Any = None) -> torch.Tensor:
        """Velocity of the base link's origin, (n_envs, 3)."""
        own = self._base_read("qvel", slice(0, 3), envs_idx)
        return self.get_links_vel([0], envs_idx)[..., 0, :] if own is None else self._out(own)

    def get_ang(self, envs_idx: Any = None) -> torch.Tensor:
        """Angular velocity of the base link, (n_envs, 3)."""
        own = self._base_read("qvel", slice(3, 6), envs_idx)
        if own is None:
            return self.get_links_ang([0], envs_idx)[..., 0, :]
        quat = self._base_read("qpos", slice(3, 7), envs_idx)
        assert quat is not None
        return self._out(geom.transform_by_quat(own, quat / np.linalg.norm(quat, axis=-1, keepdims=True)))

    def _free_base(self, what: str) -> Joint:
        joint = self.base_joint
        if joint.type is not JOINT_TYPE.FREE:
            raise UnsupportedFeatureError(
                f"{what} of entity '{self.name}', whose base does not float",
                hint="give the pose to the morph before build, or move its joints with set_dofs_position",
            )
        return joint

    def set_pos(
        self,
        pos: Any,
        envs_idx: Any = None,
        *,
        zero_velocity: bool = True,
        relative: bool = True,
        skip_forward: bool = False,
    ) -> None:
        """Move the floating base, pos (n_envs, 3) or (3,)."""
        joint = self._free_base("set_pos")
        self.set_qpos(pos, joint.qs_idx_local[:3], envs_idx, zero_velocity=zero_velocity, skip_forward=skip_forward)

    def set_quat(
        self,
        quat: Any,
        envs_idx: Any = None,
        *,
        zero_velocity: bool = True,
        relative: bool = True,
        skip_forward: bool = False,
    ) -> None:
        """Turn the floating base, quat (n_envs, 4) or (4,), w-x-y-z."""
        joint = self._free_base("set_quat")
        self.set_qpos(quat, joint.qs_idx_local[3:], envs_idx, zero_velocity=zero_velocity, skip_forward=skip_forward)

    def _links_read(self, name: str, width: int, links_idx_local: Any, envs_idx: Any) -> np.ndarray:
        """(len(envs), len(links), width) of a per-body array of the engine."""
        self._built()
        bodies = np.array([self._links[i].body for i in indices(links_idx_local, len(self._links), "links_idx_local")])
        array = self.scene.engine_get(name, self.scene.envs_read(envs_idx))
        return array.reshape(len(array), -1, width)[:, bodies]

    @property
    def _in_world(self) -> bool:
        """The entity is part of the world body and has no frame of its own there."""
        return bool(self._links) and self._links[0].body == 0

    def _constant(self, value: tuple[float, ...], envs_idx: Any) -> torch.Tensor:
        rows = len(self.scene.envs_read(envs_idx))
        return self._out(np.tile(np.asarray(value, dtype=np.float64), (rows, 1, 1)))

    def get_links_pos(self, links_idx_local: Any = None, envs_idx: Any = None, **kwargs: Any) -> torch.Tensor:
        """Origins of links, (n_envs, n_links, 3)."""
        _only_link_origin(kwargs)
        if self._in_world:
            return self._constant(self.scene.placed_at(self), envs_idx)
        return self._out(self._links_read("xpos", 3, links_idx_local, envs_idx))

    def get_links_quat(self, links_idx_local: Any = None, envs_idx: Any = None, **kwargs: Any) -> torch.Tensor:
        """Orientations of links, (n_envs, n_links, 4)."""
        _only_link_origin(kwargs)
        if self._in_world:
            return self._constant(self.morph.rotation, envs_idx)
        return self._out(self._links_read("xquat", 4, links_idx_local, envs_idx))

    def get_links_vel(self, links_idx_local: Any = None, envs_idx: Any = None, **kwargs: Any) -> torch.Tensor:
        """Velocities of the origins of links, (n_envs, n_links, 3).

        The engine keeps each body's velocity at the centre of mass of its tree: v = v_c + w x (p - c).
        """
        _only_link_origin(kwargs)
        spatial = self._links_read("cvel", 6, links_idx_local, envs_idx)
        position = self._links_read("xpos", 3, links_idx_local, envs_idx)
        roots = self.scene.engine_model.mj.body_rootid
        bodies = [self._links[i].body for i in indices(links_idx_local, len(self._links), "links_idx_local")]
        com = self.scene.engine_get("subtree_com", self.scene.envs_read(envs_idx))
        com = com.reshape(len(com), -1, 3)[:, roots[bodies]]
        return self._out(spatial[..., 3:] + np.cross(spatial[..., :3], position - com))

    def get_links_ang(self, links_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Angular velocities of links, (n_envs, n_links, 3)."""
        return self._out(self._links_read("cvel", 6, links_idx_local, envs_idx)[..., :3])

    def get_links_mass(self, links_idx_local: Any = None) -> torch.Tensor:
        """[kg], (n_links,)."""
        picked = indices(links_idx_local, self.n_links, "links_idx_local")
        return self.scene.tensor(np.array([self._links[i].get_mass() for i in picked]))

    def get_mass(self) -> torch.Tensor:
        """Total mass [kg]."""
        return self.get_links_mass().sum()

    # ------------------------------------------------------------------ control
    def _command(self, mode: CTRL_MODE, value: Any, dofs: Any, envs_idx: Any, velocity: Any = None) -> None:
        columns, envs = self._dofs(dofs), self.scene.envs_write(envs_idx)
        what = f"{mode.name.lower()} target"
        array = self._value(value, envs, len(columns), what, "dofs_idx")
        second = None
        if velocity is not None:
            second = self._value(velocity, envs, len(columns), "velocity target", "dofs_idx")
        self.scene.controller.command(mode, envs, self._v0 + columns, array, second)

    def control_dofs_position(self, position: Any, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Servo dofs to positions: force = kp (position - q) - kv v, clamped to the force range. Sticky."""
        self._command(CTRL_MODE.POSITION, position, dofs_idx_local, envs_idx)

    def control_dofs_position_velocity(
        self, position: Any, velocity: Any, dofs_idx_local: Any = None, envs_idx: Any = None
    ) -> None:
        """Servo dofs to moving targets: force = kp (position - q) + kv (velocity - v), clamped. Sticky."""
        self._command(CTRL_MODE.POSITION, position, dofs_idx_local, envs_idx, velocity)

    def control_dofs_velocity(self, velocity: Any, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Drive dofs at velocities: force = kv (velocity - v), clamped. Sticky."""
        self._command(CTRL_MODE.VELOCITY, velocity, dofs_idx_local, envs_idx)

    def control_dofs_force(self, force: Any, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Apply forces [N or N m] to dofs, clamped to the force range (hinges and slides). Sticky."""
        self._command(CTRL_MODE.FORCE, force, dofs_idx_local, envs_idx)

    def get_dofs_control_force(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """What the controller asks for at the current state, clamped, (n_envs, n_dofs)."""
        columns, envs = self._dofs(dofs_idx_local), self.scene.envs_read(envs_idx)
        everyone = np.arange(self.scene.n_rows)
        force = self.scene.controller.requested(
            self._dof_positions(everyone)[:, columns],
            self.scene.engine_get("qvel", everyone)[:, self._v0 + columns],
            self._v0 + columns,
        )
        return self._out(force[envs])

    def _gain_rows(self, envs_idx: Any) -> np.ndarray:
        if envs_idx is None:
            return np.arange(self.scene.n_rows if self.scene.controller.batched else 1)
        if not self.scene.controller.batched:
            raise GenesisError(
                "`envs_idx` cannot be specified for non-batched dofs info.",
                hint="use gs.options.RigidOptions(batch_dofs_info=True)",
            )
        return self.scene.envs_write(envs_idx)

    def _set_gain(self, name: str, value: Any, dofs_idx_local: Any, envs_idx: Any) -> None:
        columns = self._dofs(dofs_idx_local)
        envs = self._gain_rows(envs_idx)
        rows = len(envs) if self.scene.controller.batched else None
        array = finite(values(value, rows, len(columns), "envs_idx", "dofs_idx"), name)
        if (array < 0).any():
            raise OptionError(f"{name} {array.min()} is negative", where=f"entity '{self.name}'")
        getattr(self.scene.controller, name)[np.ix_(envs, self._v0 + columns)] = array
        self.scene.controller.touch()

    def _get_gain(self, name: str, dofs_idx_local: Any, envs_idx: Any) -> torch.Tensor:
        columns = self._dofs(dofs_idx_local)
        array = getattr(self.scene.controller, name)[np.ix_(self._gain_rows(envs_idx), self._v0 + columns)]
        return self.scene.tensor(array if self.scene.controller.batched else array[0])

    def set_dofs_kp(self, kp: Any, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Position gains [N m/rad or N/m], (n_dofs,); (n_envs, n_dofs) with batch_dofs_info."""
        self._set_gain("kp", kp, dofs_idx_local, envs_idx)

    def set_dofs_kv(self, kv: Any, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Velocity gains [N m s/rad or N s/m], (n_dofs,); (n_envs, n_dofs) with batch_dofs_info."""
        self._set_gain("kv", kv, dofs_idx_local, envs_idx)

    def get_dofs_kp(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Position gains, (n_dofs,); (n_envs, n_dofs) with batch_dofs_info."""
        return self._get_gain("kp", dofs_idx_local, envs_idx)

    def get_dofs_kv(self, dofs_idx_local: Any = None, envs_idx: Any = None) -> torch.Tensor:
        """Velocity gains, (n_dofs,); (n_envs, n_dofs) with batch_dofs_info."""
        return self._get_gain("kv", dofs_idx_local, envs_idx)

    def set_dofs_force_range(self, lower: Any, upper: Any, dofs_idx_local: Any = None, envs_idx: Any = None) -> None:
        """Limits of the control force [N or N m], (n_dofs,), shared by all environments."""
        columns = self._dofs(dofs_idx_local)
        if envs_idx is not None:
            raise UnsupportedFeatureError("set_dofs_force_range with envs_idx", hint="the range is shared")
        low = values(lower, None, len(columns), "envs_idx", "dofs_idx")[0]
        high = values(upper, None, len(columns), "envs_idx", "dofs_idx")[0]
        if not (low <= high).all():
            raise OptionError(f"the lower limit {low.tolist()} lies above the upper limit {high.tolist()}")
        self.scene.set_force_range(self._v0 + columns, low, high)

    def get_dofs_force_range(self, dofs_idx_local: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(lower, upper), each (n_dofs,); infinite where there is no limit."""
        columns = self._v0 + self._dofs(dofs_idx_local)
        control = self.scene.controller
        return self.scene.tensor(control.lower[columns]), self.scene.tensor(control.upper[columns])

    def get_dofs_limit(self, dofs_idx_local: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(lower, upper) of the positions [rad or m], each (n_dofs,); infinite where there is no limit."""
        columns = self._dofs(dofs_idx_local)
        mj = self.scene.engine_model.mj
        joint = mj.dof_jntid[self._v0 + columns]
        limited = mj.jnt_limited[joint].astype(bool) & (mj.jnt_type[joint] >= 2)
        lower = np.where(limited, mj.jnt_range[joint, 0], -np.inf)
        upper = np.where(limited, mj.jnt_range[joint, 1], np.inf)
        return self.scene.tensor(lower), self.scene.tensor(upper)

    def _info(self, name: str, dofs_idx_local: Any) -> torch.Tensor:
        columns = self._dofs(dofs_idx_local)
        return self.scene.tensor(getattr(self.scene.engine_model.mj, name)[self._v0 + columns])

    def get_dofs_armature(self, dofs_idx_local: Any = None) -> torch.Tensor:
        """[kg m^2 or kg], (n_dofs,)."""
        return self._info("dof_armature", dofs_idx_local)

    def get_dofs_damping(self, dofs_idx_local: Any = None) -> torch.Tensor:
        """[N m s/rad or N s/m], (n_dofs,)."""
        return self._info("dof_damping", dofs_idx_local)


def _only_link_origin(kwargs: dict[str, Any]) -> None:
    for key, value in kwargs.items():
        if key not in ("ref", "relative"):
            raise TypeError(f"unexpected argument '{key}'")
        if key == "ref" and str(value).rsplit(".", 1)[-1].lower() != "link_origin":
            raise UnsupportedFeatureError(
                f"ref = {value}", hint="positions and velocities are those of the link origin"
            )
