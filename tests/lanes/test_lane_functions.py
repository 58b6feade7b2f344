"""Elementary functions over lanes against NumPy, over the ranges that their documentation states."""

from __future__ import annotations

import numpy as np
import pytest

from genesis_core.backend.tables import aligned
from genesis_core.lanes import Struct, Table, acos, asin, atan2, exp, kernel, load, log, pow_, sincos, store

FIELDS = (("n", "I"), ("x", "l"), ("y", "l"), ("a", "l"), ("b", "l"))
LIMIT = {32: 2e-7, 64: 1e-14}


@kernel
def k_sincos(d):
    for i in range(d.n):
        s, c = sincos(load(d.x, i))
        store(d.a, i, s)
        store(d.b, i, c)


@kernel
def k_arc(d):
    for i in range(d.n):
        store(d.a, i, asin(load(d.x, i)))
        store(d.b, i, acos(load(d.x, i)))


@kernel
def k_atan2(d):
    for i in range(d.n):
        store(d.a, i, atan2(load(d.y, i), load(d.x, i)))
        store(d.b, i, load(d.x, i))


@kernel
def k_exp_log(d):
    for i in range(d.n):
        store(d.a, i, exp(load(d.x, i)))
        store(d.b, i, log(load(d.y, i)))


@kernel
def k_pow(d):
    for i in range(d.n):
        store(d.a, i, pow_(load(d.x, i), load(d.y, i)))
        store(d.b, i, pow_(load(d.x, i), 2.5))


def run(stage, bits, x, y=None):
    """(x, y, a, b) as float64 after the kernel; x and y rounded to the precision first."""
    width = 8
    dtype = np.float64 if bits == 64 else np.float32
    x = np.asarray(x, dtype)
    n = -(-len(x) // width)
    arrays = {"n": n}
    for name, value in (("x", x), ("y", x if y is None else np.asarray(y, dtype)), ("a", None), ("b", None)):
        home = aligned(n * width, dtype)
        home[:] = np.nan if value is None else 1.0
        if value is not None:
            home[: len(value)] = value
        arrays[name] = home
    stage(Table(Struct("Probe", FIELDS, bits, width, False), arrays))
    return [arrays[k][: len(x)].astype(np.longdouble) for k in ("x", "y", "a", "b")]


@pytest.mark.parametrize("bits", [32, 64])
def test_sine_and_cosine_are_within_the_documented_error(bits):
    rng = np.random.default_rng(1)
    most = 1e4 if bits == 32 else 1e6
    x = np.r_[rng.uniform(-most, most, 40000), rng.uniform(-7, 7, 40000), np.arange(-40, 40) * np.pi / 4, 0.0]
    x, _, s, c = run(k_sincos, bits, x)
    assert np.abs(s - np.sin(x)).max() <= LIMIT[bits]
    assert np.abs(c - np.cos(x)).max() <= LIMIT[bits]


@pytest.mark.parametrize("bits", [32, 64])
def test_arc_sine_and_cosine_are_within_the_documented_error_and_clamp(bits):
    x = np.r_[np.linspace(-1, 1, 50001), 1 - np.logspace(-7, -1, 500), -1 + np.logspace(-7, -1, 500)]
    x, _, a, c = run(k_arc, bits, x)
    assert (np.abs(a - np.arcsin(x)) / np.maximum(1, np.abs(np.arcsin(x)))).max() <= LIMIT[bits]
    assert (np.abs(c - np.arccos(x)) / np.maximum(1, np.abs(np.arccos(x)))).max() <= LIMIT[bits]
    _, _, a, c = run(k_arc, bits, [1.5, -7.0])
    assert np.allclose(a.astype(float), [np.pi / 2, -np.pi / 2], atol=3e-7)
    assert np.allclose(c.astype(float), [0, np.pi], atol=3e-7)


@pytest.mark.parametrize("bits", [32, 64])
def test_the_angle_of_a_point_is_right_in_all_quadrants_and_scales(bits):
    rng = np.random.default_rng(2)
    size = 10.0 ** rng.uniform(-18, 18, 60000)
    angle = rng.uniform(-np.pi, np.pi, 60000)
    x = np.r_[size * np.cos(angle), 0.0, 0.0, 1.0, -1.0, 0.0]
    y = np.r_[size * np.sin(angle), 1.0, -1.0, 0.0, 0.0, 0.0]
    x, y, a, _ = run(k_atan2, bits, x, y)
    exact = np.arctan2(y, x)
    assert (np.abs(a - exact) / np.maximum(np.abs(exact), 1e-30)).max() <= LIMIT[bits]


@pytest.mark.parametrize("bits", [32, 64])
def test_exponential_and_logarithm_are_within_the_documented_error(bits):
    rng = np.random.default_rng(3)
    most = 80 if bits == 32 else 700
    x = np.r_[rng.uniform(-most, most, 40000), rng.uniform(-1, 1, 40000), 0.0]
    y = np.r_[10.0 ** rng.uniform(-37, 37, 40000), rng.uniform(0.5, 2, 40000), 1.0]
    x, y, e, l = run(k_exp_log, bits, x, y)
    assert (np.abs(e / np.exp(x) - 1)).max() <= LIMIT[bits]
    exact = np.log(y)
    scale = np.maximum(1, np.abs(exact)) if bits == 32 else np.maximum(np.abs(exact), 1e-300)
    assert (np.abs(l - exact) / scale).max() <= LIMIT[bits]


@pytest.mark.parametrize("bits", [32, 64])
def test_exponential_and_logarithm_have_the_usual_limits(bits):
    _, _, e, l = run(k_exp_log, bits, [1000.0, -1000.0, np.nan, 0.0], [0.0, -1.0, np.inf, np.nan])
    assert np.isposinf(e[0]) and e[1] == 0 and np.isnan(e[2]) and e[3] == 1
    assert np.isneginf(l[0]) and np.isnan(l[1]) and np.isposinf(l[2]) and np.isnan(l[3])


@pytest.mark.parametrize("bits", [32, 64])
def test_powers_are_within_the_documented_error(bits):
    rng = np.random.default_rng(4)
    x = np.r_[rng.uniform(1e-6, 1, 40000), 10.0 ** rng.uniform(-8, 8, 20000)]
    y = np.r_[rng.uniform(0, 2.5, 40000), rng.uniform(-2, 2, 20000)]
    x, y, a, b = run(k_pow, bits, x, y)
    exact = np.exp(y * np.log(x))
    assert (np.abs(a / exact - 1)).max() <= LIMIT[bits]
    keep = np.abs(2.5 * np.log(x)) <= 40
    assert (np.abs(b / np.exp(np.longdouble(2.5) * np.log(x)) - 1))[keep].max() <= LIMIT[bits]


@pytest.mark.parametrize("bits", [32, 64])
def test_zero_to_a_power_and_anything_to_the_power_zero(bits):
    _, _, a, _ = run(k_pow, bits, [0.0, 0.0, 0.0, 7.0], [2.0, 0.0, -1.0, 0.0])
    assert a[0] == 0 and a[1] == 1 and np.isposinf(a[2]) and a[3] == 1
