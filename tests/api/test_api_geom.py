"""Rotation helpers, for NumPy and torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import genesis_core as gs

ANGLES = np.random.default_rng(0).uniform(-85, 85, (20, 3))
REFERENCE = Rotation.from_euler("xyz", ANGLES, degrees=True)
QUATS = REFERENCE.as_quat()[:, [3, 0, 1, 2]]


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_rotations_agree_with_scipy(kind) -> None:
    def same(found, expected) -> None:
        assert isinstance(found, torch.Tensor) == (kind is torch.tensor)
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)

    quats, vectors = kind(QUATS), kind(np.random.default_rng(1).normal(size=(20, 3)))
    sign = np.sign((np.asarray(gs.euler_to_quat(kind(ANGLES))) * QUATS).sum(-1, keepdims=True))
    same(gs.euler_to_quat(kind(ANGLES)) * kind(sign), QUATS)
    same(gs.quat_to_xyz(quats, rpy=True, degrees=True), ANGLES)
    same(gs.quat_to_R(quats), REFERENCE.as_matrix())
    same(gs.transform_by_quat(vectors, quats), REFERENCE.apply(np.asarray(vectors)))
    same(gs.inv_transform_by_quat(vectors, quats), REFERENCE.inv().apply(np.asarray(vectors)))
    same(gs.R_to_quat(gs.quat_to_R(quats)), QUATS * np.where(QUATS[:, :1] < 0, -1, 1))
    both = gs.transform_quat_by_quat(quats, kind(QUATS[::-1].copy()))
    same(gs.quat_to_R(both), (Rotation.from_quat(QUATS[::-1][:, [1, 2, 3, 0]]) * REFERENCE).as_matrix())
    same(gs.xyz_to_quat(gs.quat_to_xyz(quats)) * kind(np.sign((QUATS * QUATS).sum(-1, keepdims=True))), QUATS)


def test_a_turn_about_an_axis() -> None:
    found = gs.axis_angle_to_quat(np.pi / 2, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
