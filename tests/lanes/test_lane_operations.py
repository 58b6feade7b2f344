"""Arithmetic, masks, selection and memory of lanes; two precisions in one process."""

from __future__ import annotations

import numpy as np
import pytest

from genesis_core.backend.tables import aligned
from genesis_core.lanes import (
    Struct,
    Table,
    all_,
    any_,
    count,
    fma,
    get_lane,
    kernel,
    lane,
    lane_begin,
    lane_end,
    load,
    mask_lane,
    maximum,
    minimum,
    not_,
    param,
    quat_integrate,
    quat_mul,
    quat_rotate,
    quat_to_mat,
    quat_to_vel,
    rint,
    select,
    set_lane,
    store,
)

FIELDS = (("n", "I"), ("h", "R"), ("x", "l"), ("y", "l"), ("k", "i"))
CASES = [(32, 4), (32, 8), (32, 16), (64, 4), (64, 8)]


def probe(bits, width, x, items_y=64, h=0.5):
    dtype = np.float64 if bits == 64 else np.float32
    x = np.asarray(x, dtype).reshape(-1, width)
    home = aligned(x.size, dtype)
    home[:] = x.ravel()
    y = aligned(items_y * width, dtype)
    y[:] = np.nan
    arrays = {"n": len(x), "h": h, "x": home, "y": y, "k": np.zeros(8, np.int64)}
    return Table(Struct("Probe", FIELDS, bits, width, False), arrays), x.astype(float)


def result(table, width):
    return table.arrays["y"].reshape(-1, width).astype(float)


@kernel
def k_mixed(d):
    a = load(d.x, 0)
    b = load(d.x, 1)
    store(d.y, 0, a + b * 2 - 1 / b)
    store(d.y, 1, d.h * a - b / 4 + d.n)
    store(d.y, 2, -a)
    c = a
    c += 1.5
    c *= b
    store(d.y, 3, c)
    store(d.y, 4, minimum(a, b) + maximum(a, 0.25))
    store(d.y, 5, fma(a, b, 1.0))
    store(d.y, 6, rint(a * 10))


@pytest.mark.parametrize(("bits", "width"), CASES)
def test_numbers_and_lanes_mix_in_every_operator(bits, width):
    rng = np.random.default_rng(width)
    t, x = probe(bits, width, rng.uniform(0.1, 3, 2 * width))
    k_mixed(t)
    a, b = x
    y = result(t, width)
    tol = {"rtol": 3e-7 if bits == 32 else 1e-15, "atol": 3e-7 if bits == 32 else 1e-15}
    assert np.allclose(y[0], a + 2 * b - 1 / b, **tol)
    assert np.allclose(y[1], 0.5 * a - b / 4 + 2, **tol)
    assert np.array_equal(y[2], -a)
    assert np.allclose(y[3], (a + 1.5) * b, **tol)
    assert np.allclose(y[4], np.minimum(a, b) + np.maximum(a, 0.25), **tol)
    assert np.allclose(y[5], a * b + 1, **tol)
    assert np.array_equal(y[6], np.rint(np.asarray(a * 10)))


@kernel
def k_masks(d):
    a = load(d.x, 0)
    m = (a > 0.0) & (a < 2.0) | not_(a >= -1.0)
    store(d.y, 0, select(m, 1.0, a))
    d.k[0] = count(m)
    d.k[1] = any_(m)
    d.k[2] = all_(m)
    d.k[3] = all_(a == a)
    for k in range(lane_begin(d), lane_end(d)):
        if mask_lane(m, k):
            set_lane(d.y, 1, k, get_lane(d.x, 0, k) * 3)
        else:
            set_lane(d.y, 1, k, -7)
    store(d.y, 2, select(a != a, lane(d, 5.0), a))


@pytest.mark.parametrize(("bits", "width"), CASES)
def test_masks_choose_and_count_and_nan_is_never_less_or_more(bits, width):
    x = np.linspace(-2.5, 2.5, width)
    x[1] = np.nan
    t, _ = probe(bits, width, x)
    k_masks(t)
    x = x.astype(np.float32 if bits == 32 else float).astype(float)
    m = (x > 0) & (x < 2) | ~(x >= -1)
    y = result(t, width)
    assert np.array_equal(y[0], np.where(m, 1.0, x), equal_nan=True)
    assert list(t.arrays["k"][:4]) == [m.sum(), m.any(), m.all(), 0]
    assert np.allclose(y[1][m], (x * 3)[m], equal_nan=True) and (y[1][~m] == -7).all()
    assert np.array_equal(y[2], np.where(np.isnan(x), 5.0, x))


@kernel
def k_quaternions(d):
    q = (load(d.x, 0), load(d.x, 1), load(d.x, 2), load(d.x, 3))
    v = (load(d.x, 4), load(d.x, 5), load(d.x, 6))
    r = quat_rotate(q, v)
    m = quat_to_mat(q)
    for i in range(3):
        store(d.y, i, r[i])
    for i in range(9):
        store(d.y, 3 + i, m[i])
    p = quat_mul(q, q)
    w = quat_integrate(q, v, lane(d, d.h))
    for i in range(4):
        store(d.y, 12 + i, p[i])
        store(d.y, 16 + i, w[i])
    u = quat_to_vel(q)
    for i in range(3):
        store(d.y, 20 + i, u[i])


@pytest.mark.parametrize(("bits", "width"), CASES)
def test_quaternions_rotate_multiply_and_integrate_as_mujoco(bits, width):
    import mujoco

    rng = np.random.default_rng(width)
    q = rng.normal(size=(width, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    v = rng.normal(size=(width, 3))
    t, _ = probe(bits, width, np.c_[q, v].T.ravel())
    k_quaternions(t)
    y = result(t, width).T
    tol = 2e-6 if bits == 32 else 1e-14
    for k in range(width):
        rot, mat, prod, turned, vel = np.zeros(3), np.zeros(9), np.zeros(4), q[k].copy(), np.zeros(3)
        mujoco.mju_rotVecQuat(rot, v[k], q[k])
        mujoco.mju_quat2Mat(mat, q[k])
        mujoco.mju_mulQuat(prod, q[k], q[k])
        mujoco.mju_quatIntegrate(turned, v[k], 0.5)
        mujoco.mju_quat2Vel(vel, q[k], 1.0)
        for got, want in ((y[k, :3], rot), (y[k, 3:12], mat), (y[k, 12:16], prod), (y[k, 16:20], turned)):
            assert np.abs(got - want).max() < tol
        assert np.abs(y[k, 20:23] - vel).max() < 4 * tol


@kernel
def k_neighbours(d):
    s = lane(d, 0.0)
    for i in range(d.n):
        s = s + load(d.x, i) * load(d.x, i) / (1.0 + load(d.x, i))
    store(d.y, 0, s)


@pytest.mark.parametrize(("bits", "width"), CASES)
def test_a_lane_does_not_feel_its_neighbours(bits, width):
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 3, (20, width))
    t, _ = probe(bits, width, base)
    k_neighbours(t)
    alone = result(t, width)[0]
    for k in range(width):
        other = rng.uniform(0.1, 3, (20, width))
        other[:, (k + 1) % width] = np.nan
        other[:, k] = base[:, (k + 2) % width]
        t, _ = probe(bits, width, other)
        k_neighbours(t)
        assert result(t, width)[0][k] == alone[(k + 2) % width]


def test_the_wrong_array_type_is_refused_with_its_name():
    struct = Struct("Probe", FIELDS, 32, 8, False)
    with pytest.raises(TypeError, match=r"Probe\.x"):
        Table(struct, {"n": 1, "h": 0.1, "x": np.zeros(8), "y": np.zeros(8, np.float32), "k": np.zeros(1, np.int64)})


@kernel
def k_param(m, d):
    store(d.y, 0, param(m.c, 1) + d.h)


def test_model_constants_reach_every_lane():
    t, _ = probe(32, 8, np.zeros(8))
    constants = np.array([1.0, 2.25, 3.0], np.float32)
    k_param(Table(Struct("Constants", (("c", "r"),), 32, 8, True), {"c": constants}), t)
    assert (result(t, 8)[0] == 2.75).all()
