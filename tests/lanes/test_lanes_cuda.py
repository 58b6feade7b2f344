"""The lanes' vocabulary and the stages of a step on the CUDA target: compiled to PTX, which needs no GPU."""

from __future__ import annotations

import re
import textwrap

import pytest

import genesis_core.lanes as lanes
from genesis_core.backend.tables import model_struct, work_struct
from genesis_core.lanes import Ptr, Struct

pytest.importorskip("numba.cuda.cudadecl", reason="numba-cuda is not installed: pip install 'genesis-studio[gpu]'")
pytest.importorskip("cuda.bindings.nvvm", reason="libNVVM is not installed: pip install 'numba-cuda[cu13]'")

from genesis_core.lanes.cuda import compile_ptx

pytestmark = pytest.mark.timeout(900)

# d: struct with arrays x, y of lanes, k of integers; m: the model's side, with p of reals
FIELDS = (("x", "l"), ("y", "l"), ("k", "i"), ("h", "R"), ("n", "I"))
MODEL = (("p", "r"), ("f", "i"))
V = "load3(d.x, 0)"
Q = "load4(d.x, 0)"
M9 = "load9(d.x, 0)"
S6 = "load6(d.x, 0)"
I10 = "load10(d.x, 0)"
A, B = "load(d.x, 0)", "load(d.x, 1)"

# how each word of the vocabulary is used: what is written behind "return", as a lane or a tuple of lanes
USES = {
    "acos": f"acos({A})", "asin": f"asin({A})", "atan2": f"atan2({A}, {B})", "exp": f"exp({A})", "log": f"log({A})",
    "pow_": f"pow_({A}, m.p[0])", "sincos": f"sincos({A})", "sqrt": f"sqrt({A})", "fabs": f"fabs({A})",
    "floor": f"floor({A})", "rint": f"rint({A})", "copysign": f"copysign({A}, {B})", "fma": f"fma({A}, {B}, {A})",
    "minimum": f"minimum({A}, 1.0)", "maximum": f"maximum({A}, {B})", "select": f"select({A} > {B}, {A}, 0.0)",
    "select3": f"select3({A} > {B}, {V}, {V})", "all_": f"select(not_({A} > 0.0), lane(d, all_({A} > {B})), {A})",
    "any_": f"lane(d, any_({A} > {B}))", "count": f"lane(d, count({A} > {B}))",
    "not_": f"select(not_({A} > {B}), {A}, {B})",
    "true_": f"select(true_(d), {A}, {B})", "false_": f"select(false_(d), {A}, {B})", "lane": "lane(d, 2.5)",
    "mask_lane": f"lane(d, mask_lane({A} > {B}, lane_begin(d)))", "lane_begin": "lane(d, lane_begin(d))",
    "lane_end": "lane(d, lane_end(d))", "get_lane": "lane(d, get_lane(d.x, 3, lane_begin(d)))", "tiny": "tiny(d)",
    "epsilon": "epsilon(d)", "param": "param(m.p, 1)", "param3": "param3(m.p, 1)", "param4": "param4(m.p, 1)",
    "load": A, "load3": V, "load4": Q, "load6": S6, "load9": M9, "load10": I10,
    "take_ticket": "lane(d, take_ticket(d.k, 0))",
    "add3": f"add3({V}, {V})", "sub3": f"sub3({V}, {V})", "neg3": f"neg3({V})", "scale3": f"scale3({V}, 2.0)",
    "add_scaled3": f"add_scaled3({V}, {V}, {A})", "dot3": f"dot3({V}, {V})", "cross": f"cross({V}, {V})",
    "norm3": f"norm3({V})", "normalize3": f"normalize3({V})[0]", "mat_vec": f"mat_vec({M9}, {V})",
    "matT_vec": f"matT_vec({M9}, {V})", "mat_mul": f"mat_mul({M9}, {M9})", "matT_mul": f"matT_mul({M9}, {M9})",
    "column": f"column({M9}, 1)", "quat_mul": f"quat_mul({Q}, {Q})", "quat_conj": f"quat_conj({Q})",
    "quat_rotate": f"quat_rotate({Q}, {V})", "quat_normalize": f"quat_normalize({Q})",
    "quat_renormalize": f"quat_renormalize({Q})", "quat_column": f"quat_column({Q}, 2)",
    "quat_turn": f"quat_turn({Q}, 1, {A}, {B})", "quat_to_mat": f"quat_to_mat({Q})", "quat_to_vel": f"quat_to_vel({Q})",
    "quat_integrate": f"quat_integrate({Q}, {V}, {A})", "quat_difference": f"quat_difference({Q}, {Q})",
    "add6": f"add6({S6}, {S6})", "sub6": f"sub6({S6}, {S6})", "scale6": f"scale6({S6}, {A})",
    "add_scaled6": f"add_scaled6({S6}, {S6}, {A})", "dot6": f"dot6({S6}, {S6})",
    "cross_motion": f"cross_motion({S6}, {S6})",
    "cross_force": f"cross_force({S6}, {S6})", "inert_mul": f"inert_mul({I10}, {S6})",
}  # fmt: skip
WRITES = {
    "store": f"store(d.y, 0, {A})", "store3": f"store3(d.y, 0, {V})", "store4": f"store4(d.y, 0, {Q})",
    "store6": f"store6(d.y, 0, {S6})", "store9": f"store9(d.y, 0, {M9})", "store10": f"store10(d.y, 0, {I10})",
    "set_lane": "set_lane(d.y, 0, lane_begin(d), 1.5)",
}  # fmt: skip
NOT_CALLED_IN_KERNELS = {"Lane", "Mask", "Ptr", "Struct", "Table", "inline", "kernel", "segment"}


def structs(bits: int) -> tuple[Struct, Struct]:
    return Struct("Probe", FIELDS, bits, 1, False), Struct("ProbeModel", MODEL, bits, 1, True)


def kernel_of(statement: str):
    """def kernel(d, m): statement"""
    scope = {name: getattr(lanes, name) for name in lanes.__all__}
    exec(textwrap.dedent(f"def kernel(d, m):\n    {statement}"), scope)
    return scope["kernel"]


def ptx_of(word: str, bits: int) -> str:
    if word in WRITES:
        return compile_ptx(kernel_of(WRITES[word]), structs(bits))
    statement = f"store(d.y, 0, {USES[word]})"
    try:
        return compile_ptx(kernel_of(statement), structs(bits))
    except Exception:
        # a tuple: all of its lanes are written
        many = f"out = {USES[word]}\n    for k in range(len(out)):\n        store(d.y, k, out[k])"
        return compile_ptx(kernel_of(many), structs(bits))


def test_every_word_of_the_vocabulary_is_compiled_here():
    assert set(USES) | set(WRITES) | NOT_CALLED_IN_KERNELS == set(lanes.__all__)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("word", [*USES, *WRITES])
def test_the_vocabulary_compiles_to_ptx(word, bits):
    ptx = ptx_of(word, bits)
    assert ".visible .entry" in ptx and "st.global" in ptx
    assert "call.uni" not in ptx, "everything is inlined: our own functions, no slow paths of a library"
    if word == "pow_" and bits == 32:
        return  # its logarithm needs more digits than f32 has
    other = r"\.f64|\.b64 %fd" if bits == 32 else r"(add|mul|fma|sub)\S*\.f32"
    assert not re.search(other, ptx), f"{word} leaves its precision"


@pytest.mark.parametrize("bits", [32, 64])
def test_neighbouring_threads_read_neighbouring_numbers(bits):
    ptx = compile_ptx(kernel_of("store(d.y, 3, load(d.x, 2))"), structs(bits))
    assert "%laneid" in ptx
    size = bits // 8
    assert re.search(rf"ld\.global\S* .*\+{2 * 32 * size}\]", ptx), "item 2 is 2 * 32 numbers behind item 0"
    assert re.search(rf"st\.global\S* .*\+{3 * 32 * size}\]", ptx)


def test_questions_about_all_lanes_are_votes_of_the_warp():
    for word, vote in (("any_", "vote.sync.any"), ("all_", "vote.sync.all"), ("count", "vote.sync.ballot")):
        assert vote in ptx_of(word, 32)


def test_a_ticket_is_drawn_once_per_warp():
    ptx = ptx_of("take_ticket", 32)
    assert ptx.count("atom.global.add.u64") == 1 and ptx.count("shfl.sync.idx") == 2
    assert re.search(r"@%p\d+ bra", ptx), "only one thread draws"


def test_plain_pointers_are_arguments_too():
    scope = {name: getattr(lanes, name) for name in lanes.__all__}
    exec("def kernel(p, q):\n    store(q, 0, load(p, 1) * 2.0)", scope)
    assert ".entry" in compile_ptx(scope["kernel"], (Ptr("l", 32, 1, False),) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["positions", "smooth_dynamics", "make", "narrowphase", "solve", "integrate"])
def test_the_stages_of_a_step_compile_from_the_source_of_the_cpu(stage):
    from genesis_core.lanes.segment import SEGMENTS
    from genesis_core.physics import block  # noqa: F401  declares all segments

    segment = SEGMENTS[stage]

    def kernel(m, d):
        segment(m, d)

    ptx = compile_ptx(kernel, (model_struct(32, 1), work_struct(32, 1)))
    assert ".visible .entry" in ptx and "%laneid" in ptx
    if stage in ("positions", "smooth_dynamics", "integrate"):
        assert "call.uni" not in ptx and ".local" not in ptx
