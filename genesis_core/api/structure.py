"""The structure of an entity: links, joints, counts and places in the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from genesis_core.api.constants import JOINT_TYPE
from genesis_core.api.index import IndexingError
from genesis_core.api.links import Joint, Link
from genesis_core.errors import StateError, UnsupportedFeatureError

if TYPE_CHECKING:
    import torch

    from genesis_core.api.entity import RigidEntity
    from genesis_core.api.materials import Rigid
    from genesis_core.api.morphs import Morph
    from genesis_core.api.scene import Scene
    from genesis_core.api.surfaces import Default

_KINDS = {0: JOINT_TYPE.FREE, 1: JOINT_TYPE.SPHERICAL, 2: JOINT_TYPE.PRISMATIC, 3: JOINT_TYPE.REVOLUTE}


class _NoSuchMember(UnsupportedFeatureError, AttributeError):
    """So that `hasattr` answers False for members of the Genesis API that are not here."""


NOT_HERE = frozenset(
    [
        "get_AABB",
        "get_vAABB",
        "get_verts",
        "get_contacts",
        "get_links_net_contact_force",
        "detect_collision",
        "get_jacobian",
        "get_mass_mat",
        "inverse_kinematics",
        "inverse_kinematics_multilink",
        "plan_path",
        "attach",
        "apply_links_external_wrench",
        "get_links_acc",
        "get_links_acc_ang",
        "set_friction",
        "set_friction_ratio",
        "set_links_mass",
        "set_links_COM",
        "set_links_inertia",
        "set_mass",
        "set_dofs_act_gain",
        "set_dofs_act_bias",
        "set_dofs_stiffness",
        "set_dofs_armature",
        "set_dofs_damping",
        "set_dofs_frictionloss",
        "set_dofs_limit",
        "get_kinetic_energy",
        "get_potential_energy",
        "get_total_energy",
        "set_vverts",
        "get_vverts",
        "read_sensors",
        "geoms",
        "vgeoms",
        "equalities",
        "set_propellers_rpm",
        "get_terrain_height",
    ]
)


class EntityStructure:
    """What an entity is made of."""

    def __init__(
        self, scene: Scene, idx: int, name: str, morph: Morph, material: Rigid, surface: Default | None
    ) -> None:
        self.scene = scene
        self.idx = idx
        self.name = name
        self.morph = morph
        self.material = material
        self.surface = surface
        self._links: list[Link] = []
        self._joints: list[Joint] = []
        self._q0 = self._v0 = self._link0 = self._joint0 = 0
        self._nq = self._nv = 0

    def __repr__(self) -> str:
        return f"<RigidEntity '{self.name}' ({type(self.morph).__name__})>"

    def __getattr__(self, name: str) -> Any:
        if name in NOT_HERE:
            raise _NoSuchMember(f"RigidEntity.{name} is not in this version of Genesis Studio")
        raise AttributeError(f"'RigidEntity' object has no attribute '{name}'")

    # ------------------------------------------------------------------ structure
    def bind(self, bodies: list[int], names: list[str], link_start: int, joint_start: int) -> None:
        """Called by `Scene.build`: the engine's bodies of this entity, in order, and their names without prefix."""
        me = cast("RigidEntity", self)
        mj = self.scene.engine_model.mj
        self._link0, self._joint0 = link_start, joint_start
        place = {body: k for k, body in enumerate(bodies)}
        joints = [j for body in bodies for j in _joints_of(mj, body)]
        self._q0 = int(mj.jnt_qposadr[joints[0]]) if joints else 0
        self._v0 = int(mj.jnt_dofadr[joints[0]]) if joints else 0
        for k, (body, name) in enumerate(zip(bodies, names, strict=True)):
            parent = int(mj.body_parentid[body])
            link = Link(me, name, k, body, link_start + place[parent] if parent in place else -1)
            self._links.append(link)
            own = list(_joints_of(mj, body))
            for j in own:
                kind = _KINDS[int(mj.jnt_type[j])]
                title = self.scene.local_name(me, self.scene.engine_model.names["joint"][j]) or name
                dof, q = int(mj.jnt_dofadr[j]) - self._v0, int(mj.jnt_qposadr[j]) - self._q0
                link.joints.append(Joint(link, title, kind, len(self._joints), dof, q))
                self._joints.append(link.joints[-1])
            if not own:
                link.joints.append(Joint(link, name, JOINT_TYPE.FIXED, len(self._joints), None, None))
                self._joints.append(link.joints[-1])
        self._nq = sum(joint.n_qs for joint in self._joints)
        self._nv = sum(joint.n_dofs for joint in self._joints)
        if not bodies:  # part of the world: one link that never moves
            link = Link(me, self.name, 0, 0, -1)
            link.joints.append(Joint(link, self.name, JOINT_TYPE.FIXED, 0, None, None))
            self._links, self._joints = [link], list(link.joints)

    def _built(self) -> None:
        if not self.scene.is_built:
            raise StateError("RigidEntity is not built yet.", where=f"entity '{self.name}'", hint="call scene.build()")

    @property
    def is_built(self) -> bool:
        return self.scene.is_built

    @property
    def links(self) -> list[Link]:
        self._built()
        return list(self._links)

    @property
    def joints(self) -> list[Joint]:
        """All joints, that of the base link first (FIXED or FREE)."""
        self._built()
        return list(self._joints)

    @property
    def base_link(self) -> Link:
        return self.links[0]

    @property
    def base_joint(self) -> Joint:
        return self.joints[0]

    @property
    def base_link_idx(self) -> int:
        return self.link_start

    n_links = property(lambda self: len(self.links))
    n_joints = property(lambda self: len(self.joints))

    @property
    def n_dofs(self) -> int:
        self._built()
        return self._nv

    @property
    def n_qs(self) -> int:
        self._built()
        return self._nq

    @property
    def link_start(self) -> int:
        self._built()
        return self._link0

    @property
    def link_end(self) -> int:
        return self.link_start + self.n_links

    @property
    def joint_start(self) -> int:
        self._built()
        return self._joint0

    @property
    def joint_end(self) -> int:
        return self.joint_start + self.n_joints

    @property
    def dof_start(self) -> int:
        self._built()
        return self._v0

    @property
    def dof_end(self) -> int:
        return self.dof_start + self.n_dofs

    @property
    def q_start(self) -> int:
        self._built()
        return self._q0

    @property
    def q_end(self) -> int:
        return self.q_start + self.n_qs

    @property
    def init_qpos(self) -> torch.Tensor:
        """qpos at the start, (n_qs,)."""
        self._built()
        return self.scene.tensor(self.scene.engine_model.mj.qpos0[self._q0 : self._q0 + self._nq])

    def get_link(self, name: str) -> Link:
        """The link of that name; GenesisError lists the names there are."""
        return _by_name(self.links, name, "Link")

    def get_joint(self, name: str) -> Joint:
        """The joint of that name; GenesisError lists the names there are."""
        return _by_name(self.joints, name, "Joint")


def _joints_of(mj: Any, body: int) -> range:
    first = int(mj.body_jntadr[body])
    return range(first, first + int(mj.body_jntnum[body])) if first >= 0 else range(0)


def _by_name(items: list[Any], name: str, kind: str) -> Any:
    for item in items:
        if item.name == name:
            return item
    raise IndexingError(
        f"{kind} not found for name: {name}. Available {kind.lower()} names: {[item.name for item in items]}"
    )
