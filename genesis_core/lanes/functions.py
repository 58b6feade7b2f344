"""Elementary functions over lanes.

| function        | range that tests cover            | largest error, f32 | largest error, f64 |
|-----------------|-----------------------------------|--------------------|--------------------|
| sincos          | |x| <= 1e4 (f32), 1e6 (f64)       | 2e-7 absolute      | 1e-14 absolute     |
| atan2           | all finite y, x of 1e-18 .. 1e18  | 2e-7 relative      | 1e-14 relative     |
| asin, acos      | |x| <= 1 (clamped outside)        | 2e-7 of max(1, .)  | 1e-14 of max(1, .) |
| exp             | -80 .. 80 (f32), -700 .. 700      | 2e-7 relative      | 1e-14 relative     |
| log             | normal positive numbers           | 2e-7 of max(1, .)  | 1e-14 relative     |
| pow_            | x >= 0, |y log x| <= 80 (f32), 40 | 2e-7 relative      | 1e-14 relative     |

Argument reduction follows Cody and Waite with fused multiply-add; the polynomials are minimax fits (Remez exchange, 60
digits) of sin(r)/r, cos r, atan(t)/t, log((1+s)/(1-s))/s and exp(r). f32 powers are computed in f64 lanes.
Outside the range: exp saturates to 0 and inf, log(0) is -inf, log of a negative number is NaN, NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from genesis_core.lanes.compile import inline
from genesis_core.lanes.ops import (
    copysign,
    exponent,
    fabs,
    floor,
    fma,
    lane,
    mantissa,
    maximum,
    minimum,
    narrow,
    rint,
    select,
    sqrt,
    tiny,
    two_to,
    widen,
)
from genesis_core.lanes.types import Lane

HALF_PI = 1.5707963267948966
PI = 3.141592653589793


# ------------------------------------------------------------------ the vocabulary
def sincos(x):
    """(sin x, cos x)."""
    raise NotImplementedError


def atan2(y, x):
    """Angle of the point (x, y) in -pi .. pi; atan2(0, 0) is 0."""
    raise NotImplementedError


def exp(x):
    """e to the power x."""
    raise NotImplementedError


def log(x):
    """Natural logarithm."""
    raise NotImplementedError


def pow_(x, y):
    """x to the power y for x >= 0; 0**0 is 1."""
    raise NotImplementedError


# ------------------------------------------------------------------ sine and cosine
@inline
def _quadrants(q, s, c):
    h = q * 0.5
    odd = (h - floor(h)) > 0.25
    f = q * 0.25
    f = f - floor(f)
    sin = select(odd, c, s)
    cos = select(odd, s, c)
    return select(f > 0.375, -sin, sin), select((f > 0.125) & (f < 0.625), -cos, cos)


@inline
def _sincos32(x):
    q = rint(x * 0.6366197723675814)
    r = fma(q, -1.57079637050628662109375, x)
    r = fma(q, 4.371138828673792886547744e-8, r)
    r = fma(q, 1.715124510005881872803934e-15, r)
    z = r * r
    p = fma(fma(z, -0.00019516656129672006, 0.00833217354563404561), z, -0.16666654873519411827)
    s = fma(p * z, r, r)
    p = fma(fma(z, 0.000024437731330440447918, -0.0013887361464123244697), z, 0.041666646748165467158)
    c = fma(z * z, p, fma(z, -0.5, 1.0))
    return _quadrants(q, s, c)


@inline
def _sincos64(x):
    q = rint(x * 0.6366197723675814)
    r = fma(q, -1.57079632679489655799898173427, x)
    r = fma(q, -6.12323399573676603586882014729e-17, r)
    z = r * r
    p = fma(z, 1.5896505144533916237e-10, -2.5050753267206428032e-8)
    p = fma(p, z, 2.7557313662068402289e-6)
    p = fma(p, z, -0.00019841269829725209756)
    p = fma(p, z, 0.0083333333333223150987)
    p = fma(p, z, -0.1666666666666663165)
    s = fma(p * z, r, r)
    p = fma(z, -1.1359449037029282628e-11, 2.0875719565797517572e-9)
    p = fma(p, z, -2.7557314326085435084e-7)
    p = fma(p, z, 0.000024801587289395131373)
    p = fma(p, z, -0.0013888888888873991102)
    p = fma(p, z, 0.04166666666666659875)
    c = fma(z * z, p, fma(z, -0.5, 1.0))
    return _quadrants(q, s, c)


# ------------------------------------------------------------------ arc functions
@inline
def _atan_poly32(t):
    z = t * t
    p = fma(fma(z, 0.080578695344223345644, -0.13879149024508732528), z, 0.19977866608308737118)
    p = fma(p, z, -0.33332953861282643099)
    return fma(p * z, t, t)


@inline
def _atan_poly64(t):
    z = t * t
    p = fma(z, -0.01790738056959595845, 0.038064987990413027085)
    p = fma(p, z, -0.050393321054303994856)
    p = fma(p, z, 0.058478976688144536893)
    p = fma(p, z, -0.066631054926773716249)
    p = fma(p, z, 0.076920603649469526857)
    p = fma(p, z, -0.090908977672514523656)
    p = fma(p, z, 0.11111110783820244231)
    p = fma(p, z, -0.14285714280204130673)
    p = fma(p, z, 0.19999999999953663583)
    p = fma(p, z, -0.33333333333333197751)
    return fma(p * z, t, t)


@inline
def _octant(y, x):
    """t = tan of the angle to the nearer axis, folded into |t| <= tan(pi/8), and whether it was folded by pi/4."""
    ay = fabs(y)
    ax = fabs(x)
    lo = minimum(ay, ax)
    hi = maximum(ay, ax)
    fold = lo > 0.41421356237309503 * hi
    num = select(fold, lo - hi, lo)
    den = select(fold, lo + hi, hi)
    return num / maximum(den, tiny(den)), fold, ay > ax


@inline
def _unfold(a, fold, steep, y, x):
    a = select(fold, 0.7853981633974483 + a, a)
    a = select(steep, HALF_PI - a, a)
    a = select(x < 0.0, PI - a, a)
    return copysign(a, y)


@inline
def _atan2_32(y, x):
    t, fold, steep = _octant(y, x)
    return _unfold(_atan_poly32(t), fold, steep, y, x)


@inline
def _atan2_64(y, x):
    t, fold, steep = _octant(y, x)
    return _unfold(_atan_poly64(t), fold, steep, y, x)


@inline
def asin(x):
    """Arc sine in -pi/2 .. pi/2; arguments are clamped to -1 .. 1."""
    x = maximum(minimum(x, 1.0), -1.0)
    return atan2(x, sqrt((1.0 - x) * (1.0 + x)))


@inline
def acos(x):
    """Arc cosine in 0 .. pi; arguments are clamped to -1 .. 1."""
    x = maximum(minimum(x, 1.0), -1.0)
    return atan2(sqrt((1.0 - x) * (1.0 + x)), x)


# ------------------------------------------------------------------ exponential and logarithm
@inline
def _scale_by_power(p, n):
    """p * 2**n for any n: in two halves, so that neither leaves the exponent range."""
    half = floor(n * 0.5)
    return p * two_to(half) * two_to(n - half)


@inline
def _exp32(x):
    y = minimum(maximum(x, -104.0), 89.0)
    n = rint(y * 1.4426950408889634)
    r = fma(n, -0.693145751953125, y)
    r = fma(n, -0.000001428606765330187045737746, r)
    p = fma(r, 0.0013814480621269098142, 0.0083687802106351554523)
    p = fma(p, r, 0.041668393942746118593)
    p = fma(p, r, 0.16666520110959004874)
    p = fma(p, r, 0.49999993413848515748)
    e = _scale_by_power(fma(p * r, r, r) + 1.0, n)
    return select(x == x, e, x)


@inline
def _exp64(x):
    y = minimum(maximum(x, -746.0), 710.0)
    n = rint(y * 1.4426950408889634)
    r = fma(n, -0.693147180560117703862488269806, y)
    r = fma(n, 1.72394445256148347926339558738e-13, r)
    p = fma(r, 2.4999912963945525778e-8, 2.7630378723934164829e-7)
    p = fma(p, r, 2.7557587514330210134e-6)
    p = fma(p, r, 0.000024801492762802140377)
    p = fma(p, r, 0.00019841269504567014004)
    p = fma(p, r, 0.001388888894392227755)
    p = fma(p, r, 0.008333333333495716397)
    p = fma(p, r, 0.041666666666529191551)
    p = fma(p, r, 0.16666666666666410092)
    p = fma(p, r, 0.50000000000000107205)
    e = _scale_by_power(fma(p * r, r, r) + 1.0, n)
    return select(x == x, e, x)


@inline
def _log_split(x):
    """x = m * 2**e with m in sqrt(1/2) .. sqrt(2); s = (m-1)/(m+1)."""
    m = mantissa(x)
    e = exponent(x)
    big = m > 1.4142135623730951
    m = select(big, m * 0.5, m)
    e = select(big, e + 1.0, e)
    return e, (m - 1.0) / (m + 1.0), m - 1.0


@inline
def _log_ends(x, y):
    y = select(x > 1.7e308, x, y)
    y = select(x > 0.0, y, -1.0 / fabs(x))
    return select(x < 0.0, sqrt(x), select(x == x, y, x))


@inline
def _log32(x):
    e, s, f = _log_split(x)
    z = s * s
    p = fma(fma(z, 0.29873078405660061496, 0.39977495380775657592), z, 0.66666776718675923548)
    # log((1+s)/(1-s)) = 2s + s^3 p with 2s = f - s f: adding the small part last keeps the leading digits of f
    y = fma(e, 0.000001428606765330187045737746, s * fma(z, p, -f)) + f
    y = fma(e, 0.693145751953125, y)
    y = select(x > 3.4e38, x, y)
    y = select(x > 0.0, y, -1.0 / fabs(x))
    return select(x < 0.0, sqrt(x), select(x == x, y, x))


@inline
def _log64(x):
    e, s, f = _log_split(x)
    z = s * s
    p = fma(z, 0.14797511712686787446, 0.1531390283539369369)
    p = fma(p, z, 0.18183569756917869442)
    p = fma(p, z, 0.22222198475618461344)
    p = fma(p, z, 0.28571428743266944123)
    p = fma(p, z, 0.39999999999411067413)
    p = fma(p, z, 0.66666666666667349014)
    y = fma(e, -1.72394445256148347926339558738e-13, s * fma(z, p, -f)) + f
    return _log_ends(x, fma(e, 0.693147180560117703862488269806, y))


@inline
def _pow64(x, y):
    r = _exp64(y * _log64(x))
    zero = lane(x, 0.0)
    r = select(x == 0.0, select(y > 0.0, zero, 1.0 / zero), r)
    return select(y == 0.0, lane(x, 1.0), r)


@inline
def _pow32(x, y):
    return narrow(_pow64(widen(x), widen(y)))


# ------------------------------------------------------------------ choice by precision
def by_precision(single: Any, double: Any) -> Any:
    """The overload of a one-argument function: the f32 or the f64 version, by the type of the argument."""

    def choose(x):
        if not isinstance(x, Lane):
            return None
        return (lambda x: single(x)) if x.bits == 32 else (lambda x: double(x))

    return choose


def by_precision2(single: Any, double: Any) -> Any:
    """The overload of a two-argument function; either argument may be a plain number."""

    def choose(y, x):
        lanes = [a for a in (y, x) if isinstance(a, Lane)]
        if not lanes:
            return None
        if len(lanes) == 2:
            return (lambda y, x: single(y, x)) if lanes[0].bits == 32 else (lambda y, x: double(y, x))
        if isinstance(y, Lane):
            return (lambda y, x: single(y, lane(y, x))) if y.bits == 32 else (lambda y, x: double(y, lane(y, x)))
        return (lambda y, x: single(lane(x, y), x)) if x.bits == 32 else (lambda y, x: double(lane(x, y), x))

    return choose


def pow_choice(x, y):
    """As `by_precision2`, with the argument names of `pow_`."""
    chosen = by_precision2(_pow32, _pow64)(x, y)
    if chosen is None:
        return None
    impl = inline(chosen)
    return lambda x, y: impl(x, y)


FUNCTIONS = (
    (sincos, by_precision(_sincos32, _sincos64)),
    (exp, by_precision(_exp32, _exp64)),
    (log, by_precision(_log32, _log64)),
    (atan2, by_precision2(_atan2_32, _atan2_64)),
    (pow_, pow_choice),
)
for _stub, _choice in FUNCTIONS:
    overload(_stub)(_choice)
