"""Options, morphs, materials: strict, with near names, honest about what has no effect."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

import genesis_core as gs

pytestmark = pytest.mark.usefixtures("session32")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gs.options.SimOptions(dtt=0.01), "Unrecognized attribute 'dtt'; did you mean 'dt'"),
        (lambda: gs.options.SimOptions(dt=-1.0), "'dt': input should be greater than 0, got -1.0"),
        (lambda: gs.options.SimOptions(dt="0.01"), "'dt': input should be a valid number"),
        (lambda: gs.options.RigidOptions(enable_collision=1), "'enable_collision': input should be a valid boolean"),
        (lambda: gs.options.RigidOptions(iterationz=3), "did you mean 'iterations'"),
        (lambda: gs.morphs.Box(), "give either size, or lower and upper"),
        (lambda: gs.morphs.Box(size=(1, 1, 0)), "must be positive"),
        (lambda: gs.morphs.Box(lower=(0, 0, 0), upper=(1, 1, 1), pos=(0, 0, 0)), "pos follows from lower and upper"),
        (lambda: gs.morphs.Sphere(radius=0), "'radius': input should be greater than 0"),
        (lambda: gs.morphs.Sphere(quat=(0, 0, 0, 0)), "has no length"),
        (lambda: gs.morphs.Sphere(quat=(1, 0, 0, 0), euler=(0, 0, 0)), "euler or quat, not both"),
        (lambda: gs.morphs.Sphere(pos=(float("nan"), 0, 0)), "is not finite"),
        (lambda: gs.morphs.Sphere(visualization=False, collision=False), "cannot both be False"),
        (lambda: gs.morphs.MJCF(), "file is missing"),
        (lambda: gs.morphs.MJCF(filee="a.xml"), "did you mean 'file'"),
        (lambda: gs.materials.Rigid(rho=-1), "'rho': input should be greater than 0"),
        (lambda: gs.surfaces.Default(colour=(1, 0, 0)), "did you mean 'color'"),
    ],
)
def test_mistakes_are_named_with_value_and_near_name(make, message: str) -> None:
    with pytest.raises(gs.OptionError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gs.morphs.Terrain(),
        lambda: gs.morphs.Drone(file="x.urdf"),
        lambda: gs.materials.MPM.Elastic(),
        lambda: gs.materials.Kinematic(),
        lambda: gs.options.MPMOptions(),
        lambda: gs.renderers.RayTracer(),
        lambda: gs.sensors.IMU(entity_idx=0),
        lambda: gs.Scene(sim_options=gs.options.SimOptions(requires_grad=True)),
        lambda: gs.Scene(rigid_options=gs.options.RigidOptions(noslip_iterations=3)),
        lambda: gs.Scene(rigid_options=gs.options.RigidOptions(friction_cone=gs.friction_cone.elliptic)),
        lambda: gs.Scene(rigid_options=gs.options.RigidOptions(constraint_solver=gs.constraint_solver.CG)),
        lambda: gs.Scene(mpm_options=object()),
        lambda: gs.Scene().add_camera(),
    ],
)
def test_what_is_not_built_raises_by_name(make) -> None:
    with pytest.raises(gs.UnsupportedFeatureError, match=r"\w{3,}"):
        make()


def test_settings_without_effect_are_named_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="genesis_core"):
        gs.Scene(
            rigid_options=gs.options.RigidOptions(max_collision_pairs=200, use_gjk_collision=True),
            vis_options=gs.options.VisOptions(shadow=False),
            show_viewer=True,
        )
    text = caplog.text
    for name in ("max_collision_pairs", "use_gjk_collision", "shadow", "show_viewer"):
        assert name in text


def test_defaults_and_values_equal_to_them_give_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="genesis_core"):
        gs.Scene(rigid_options=gs.options.RigidOptions(max_collision_pairs=150), show_viewer=False)
    assert caplog.records == []


def test_vectors_may_be_lists_arrays_or_tensors() -> None:
    for pos in ([1, 2, 3], (1, 2, 3), np.array([1.0, 2, 3]), torch.tensor([1.0, 2, 3])):
        assert gs.morphs.Sphere(pos=pos).pos == (1, 2, 3)


def test_euler_angles_are_degrees_about_fixed_axes() -> None:
    from scipy.spatial.transform import Rotation

    angles = (20.0, -35.0, 110.0)
    expected = Rotation.from_euler("xyz", angles, degrees=True).as_quat()[[3, 0, 1, 2]]
    found = np.array(gs.morphs.Box(size=(1, 1, 1), euler=angles).rotation)
    assert min(np.abs(found - expected).max(), np.abs(found + expected).max()) < 1e-12


def test_corners_make_the_same_box_as_size_and_pos() -> None:
    box = gs.morphs.Box(lower=(0, 1, 2), upper=(2, 4, 6))
    assert box.edges == (2, 3, 4) and box.center == (1, 2.5, 4)
