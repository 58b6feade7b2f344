"""The scene bundle crosses process borders unchanged, and the grid stands where Genesis puts it."""

import msgspec
import numpy as np
import pytest

from genesis_core.layout.grid import env_offsets
from genesis_core.layout.scene import Mesh, decode, encode


def test_arrays_survive_the_wire_with_dtype_and_shape():
    mesh = Mesh(
        "m", np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32), np.zeros((0, 3), np.int32)
    )
    back = decode(encode(mesh), Mesh)
    assert back.vertices.dtype == np.float32
    np.testing.assert_array_equal(back.vertices, mesh.vertices)
    assert back.faces.shape == (0, 3)
    back.vertices[0, 0] = 7  # writable copy, not a view of the message


def test_object_arrays_are_refused():
    evil = np.array([object()], dtype=object)
    with pytest.raises((ValueError, TypeError, msgspec.ValidationError)):
        decode(encode(Mesh("m", evil, evil, evil)), Mesh)


def test_the_grid_is_centred_and_spaced():
    offsets = env_offsets(4, (2.0, 3.0))
    np.testing.assert_allclose(offsets.mean(axis=0), 0)
    np.testing.assert_allclose(offsets[:, :2], [[-1, -1.5], [-1, 1.5], [1, -1.5], [1, 1.5]])


@pytest.mark.parametrize(("n", "per_row", "rows"), [(1, None, 1), (5, None, 2), (7, 2, 4), (3, 10, 1)])
def test_rows_of_the_grid(n, per_row, rows):
    offsets = env_offsets(n, (1.0, 1.0), per_row, center=False)
    assert offsets.shape == (n, 3)
    assert len(np.unique(offsets[:, 0])) == rows
    assert len(np.unique(offsets, axis=0)) == n


def test_no_environment_has_no_offset():
    assert env_offsets(0, (1.0, 1.0)).shape == (0, 3)
