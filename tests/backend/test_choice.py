"""One table: environment variables and machines against the device that is chosen, or the words of the refusal."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from genesis_core.backend.choice import Choice, DrawDevice, Gpu, Machine, Mig, choose
from genesis_core.errors import DeviceError

A, H, T = "NVIDIA A100", "NVIDIA H200", "NVIDIA T4"
METAL = {"system": "darwin", "no_metal": ""}


def gpu(index: int, name: str = H, **more) -> Gpu:
    return Gpu(index, name, f"GPU-{index}{index}aa-0000", f"00000000:{index + 1:02X}:00.0", **more)


def drawer(index: int, of: int) -> DrawDevice:
    return DrawDevice(index, f"H200 {of}", pci=f"0000:{of + 1:02x}:00.0")


SOFTWARE = DrawDevice(9, "llvmpipe", software=True)
NONE = Machine()
ONE = Machine(gpus=(gpu(0),))
TWO = Machine(gpus=(gpu(0), gpu(1)))
EIGHT = Machine(gpus=tuple(gpu(i) for i in range(8)))
WINDOWS = Machine(gpus=(gpu(0), gpu(1)), system="win32")
MAC = Machine(**METAL)
INTEL_MAC = Machine(system="darwin", no_metal="no Apple chip")
# CUDA counts the H200 (NVML's 1) first, then the A100 (2), then the T4 (0)
MIXED = Machine(gpus=(gpu(0, T, speed_rank=2), gpu(1, H, speed_rank=0), gpu(2, A, speed_rank=1)))
UNRANKED = Machine(gpus=(gpu(0, T), gpu(1, H)))
SLICES = (Mig("MIG-aaaa-1", 1, 0), Mig("MIG-bbbb-2", 2, 0))
SLICED = Machine(gpus=(gpu(0, mig_mode=True, mig=SLICES), gpu(1)))
UNSLICED = Machine(gpus=(gpu(0, mig_mode=True),))
TWINS = Machine(gpus=(Gpu(0, H, "GPU-12ab"), Gpu(1, H, "GPU-12cd")))
# EGL lists the GPUs backwards, and Mesa's software renderer behind them
DRAWN = Machine(gpus=(gpu(0), gpu(1), gpu(2)), draw=(drawer(0, 2), drawer(1, 1), drawer(2, 0), SOFTWARE))
HIDDEN = Machine(gpus=(gpu(0), gpu(1)), draw=(drawer(0, 1), DrawDevice(1, "llvmpipe", software=True)))
ORDINALS = Machine(gpus=(gpu(0), gpu(1)), draw=(DrawDevice(0, "one", cuda=1), DrawDevice(1, "zero", cuda=0)))
DRAW_ONLY = Machine(draw=(DrawDevice(0, "AMD"), DrawDevice(1, "llvmpipe", software=True)))
LATER = Machine(gpus=(gpu(0),), no_cuda="physics on CUDA is not in this version")


def frozen(machine: Machine, *indices: int) -> Machine:
    return Machine(gpus=machine.gpus, seen=tuple(machine.gpus[i].uuid for i in indices))


@dataclass
class Case:
    name: str
    machine: Machine
    env: dict[str, str] = field(default_factory=dict)
    gpu: int | None = 0
    ordinal: int = 0
    backend: str = "cuda"  # of the answer
    asked: str = "gpu"
    mig: str = ""
    draw: int | None = None
    says: str = ""  # in the notes or in why something fell back


def cvd(mask: str, **more: str) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": mask, **more}


def qd(value: str, **more: str) -> dict[str, str]:
    return {"QD_VISIBLE_DEVICE": value, **more}


PCI = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
CPU = {"gpu": None, "backend": "cpu"}
CHOSEN = [
    # nothing set
    Case("no GPU is the CPU", NONE, **CPU, says="no NVIDIA GPU was found on this Linux"),
    Case("one GPU is it", ONE),
    Case("the first of two", TWO),
    Case("the first of eight", EIGHT),
    Case("Windows", WINDOWS),
    Case("a Mac computes on Metal", MAC, gpu=None, backend="metal"),
    Case(
        "an Intel Mac computes on the CPU", Machine(system="darwin", no_metal="no Apple chip"), **CPU, says="no Apple"
    ),
    Case("the CPU by force", EIGHT, asked="cpu", **CPU),
    Case("the CPU by force, whatever the variables say", TWO, cvd("0") | qd("1"), asked="cpu", **CPU),
    Case("Metal by force", MAC, asked="metal", gpu=None, backend="metal"),
    Case("a GPU without kernels for it", LATER, **CPU, says="not in this version"),
    # CUDA_VISIBLE_DEVICES: numbers
    Case("a number", TWO, cvd("1"), gpu=1),
    Case("a number on Windows", WINDOWS, cvd("1"), gpu=1),
    Case("spaces around the number", TWO, cvd(" 1 "), gpu=1),
    Case("the last of eight", EIGHT, cvd("7"), gpu=7),
    Case("a list begins with its first", EIGHT, cvd("3,1"), gpu=3),
    Case("empty hides all", TWO, cvd(""), **CPU, says="hides every GPU"),
    Case("-1 hides all", TWO, cvd("-1"), **CPU, says="hides every GPU"),
    Case("-1 hides all from a Mac, too", MAC, cvd("-1"), gpu=None, backend="metal"),
    Case("a number too large hides all", TWO, cvd("2"), **CPU, says="'2' is no GPU here"),
    Case("a number too large cuts the list", TWO, cvd("1,5,0"), gpu=1, says="everything behind it"),
    Case("-1 cuts the list", EIGHT, cvd("0,2,-1,1"), says="'-1' is no GPU"),
    Case("a word hides all", TWO, cvd("all"), **CPU, says="'all' is no GPU here"),
    Case("a number with letters is the number", TWO, cvd("1gpu"), gpu=1),
    Case("a repeated number hides all", TWO, cvd("1,1"), **CPU, says="twice"),
    Case("a plus sign", TWO, cvd("+1"), gpu=1),
    Case("a comma at the end", TWO, cvd("1,"), gpu=1),
    Case("a UUID behind a number cuts the list", TWO, cvd("1,GPU-00aa-0000"), gpu=1, says="no GPU here"),
    Case("a mask without any GPU", NONE, cvd("0"), **CPU),
    # UUIDs
    Case("a UUID", TWO, cvd("GPU-11aa-0000"), gpu=1),
    Case("a UUID cut short", TWO, cvd("GPU-1"), gpu=1),
    Case("UUIDs in another order", EIGHT, cvd("GPU-55,GPU-22"), gpu=5),
    Case("an unknown UUID hides all", TWO, cvd("GPU-99"), **CPU, says="'GPU-99' is no GPU here"),
    Case("an unknown UUID cuts the list", TWO, cvd("GPU-11,GPU-99,GPU-00"), gpu=1, says="GPU-99"),
    Case("an ambiguous UUID hides all", TWINS, cvd("GPU-12"), **CPU, says="fits 2 GPUs"),
    Case("a repeated UUID hides all", TWO, cvd("GPU-11,GPU-11aa"), **CPU, says="twice"),
    Case("a number behind a UUID cuts the list", TWO, cvd("GPU-11,0"), gpu=1, says="'0' is no GPU"),
    # MIG
    Case("the first slice of a sliced GPU", SLICED, mig="MIG-aaaa-1", says="one MIG slice only"),
    Case("a slice by UUID", SLICED, cvd("MIG-bbbb-2"), mig="MIG-bbbb-2"),
    Case("a slice by a UUID cut short", SLICED, cvd("MIG-b"), mig="MIG-bbbb-2"),
    Case("a slice by GPU and instances", SLICED, cvd("MIG-GPU-00aa-0000/2/0"), mig="MIG-bbbb-2"),
    Case("of several slices CUDA shows one", SLICED, cvd("MIG-bbbb-2,MIG-aaaa-1"), mig="MIG-bbbb-2", says="only"),
    Case("an unknown slice hides all", SLICED, cvd("MIG-cc"), **CPU, says="no MIG slice"),
    Case("a slice with wrong instances hides all", SLICED, cvd("MIG-GPU-00aa-0000/7/0"), **CPU, says="no MIG slice"),
    Case("the number of a sliced GPU is its first slice", SLICED, cvd("0"), mig="MIG-aaaa-1"),
    Case("the number of the other GPU", SLICED, cvd("1"), gpu=1),
    Case("MIG mode without slices", UNSLICED, **CPU, says="has no compute instance"),
    # QD_VISIBLE_DEVICE, EGL_DEVICE_ID and what follows them
    Case("QD alone: CUDA follows", TWO, qd("1"), gpu=1, ordinal=1),
    Case("QD by UUID", TWO, qd("GPU-11"), gpu=1, ordinal=1),
    Case("an empty QD is none", TWO, qd("")),
    Case("QD inside the mask", EIGHT, qd("5") | cvd("2,5"), gpu=5, ordinal=1),
    Case("EGL alone: the others follow", EIGHT, {"EGL_DEVICE_ID": "6"}, gpu=6, ordinal=6),
    Case("all three agree", EIGHT, cvd("4") | qd("4") | {"EGL_DEVICE_ID": "4"}, gpu=4),
    Case("a UUID and numbers agree", EIGHT, cvd("GPU-44") | qd("4"), gpu=4),
    # order
    Case("fastest first", MIXED, gpu=1),
    Case("by PCI address", MIXED, PCI, gpu=0),
    Case("a number counts fastest first", MIXED, cvd("2"), gpu=0),
    Case("a number counts by PCI address", MIXED, cvd("2") | PCI, gpu=2),
    Case("QD counts as CUDA does", MIXED, cvd("1") | qd("1"), gpu=2),
    Case("a UUID needs no order", UNRANKED, cvd("GPU-11"), gpu=1),
    Case("PCI order needs no ranks", UNRANKED, cvd("1") | PCI, gpu=1),
    # torchrun
    Case("LOCAL_RANK alone", EIGHT, {"LOCAL_RANK": "3"}, gpu=3, ordinal=3),
    Case("LOCAL_RANK counts inside the mask", EIGHT, cvd("2,5", LOCAL_RANK="1"), gpu=5, ordinal=1),
    Case("LOCAL_RANK counts inside a mask of UUIDs", EIGHT, cvd("GPU-77,GPU-66", LOCAL_RANK="1"), gpu=6, ordinal=1),
    Case("a mask of one leaves LOCAL_RANK no choice", EIGHT, cvd("6", LOCAL_RANK="6"), gpu=6, says="leaves no choice"),
    Case("rank 0 of a mask of one", EIGHT, cvd("6", LOCAL_RANK="0"), gpu=6),
    Case("QD as LOCAL_RANK", EIGHT, qd("2", LOCAL_RANK="2"), gpu=2, ordinal=2),
    Case("LOCAL_RANK without GPUs", NONE, {"LOCAL_RANK": "1"}, **CPU),
    # drawing
    Case("EGL's order is not CUDA's", DRAWN, draw=2),
    Case("drawing follows the mask", DRAWN, cvd("2"), gpu=2, draw=0),
    Case("EGL_DEVICE_ID is a GPU's number", DRAWN, cvd("2", EGL_DEVICE_ID="2"), gpu=2, draw=0),
    Case("drawing on a GPU, computing on the CPU", DRAWN, {"EGL_DEVICE_ID": "0"}, asked="cpu", **CPU, draw=2),
    Case("the software renderer by its own number", DRAWN, {"EGL_DEVICE_ID": "9"}, draw=9),
    Case("a GPU that EGL does not list", HIDDEN, draw=1, says="EGL has no device for GPU 0"),
    Case("only the CUDA ordinal is known", ORDINALS, qd("1"), gpu=1, ordinal=1, draw=0),
    Case("the CUDA ordinal under a mask is not trusted", ORDINALS, cvd("1"), gpu=1, says="EGL has no device"),
    Case("EGL's number without NVIDIA GPUs", DRAW_ONLY, {"EGL_DEVICE_ID": "1"}, **CPU, draw=1),
    Case("EGL's default without a variable", DRAW_ONLY, **CPU),
    # CUDA initialised before
    Case("initialised under the same mask", frozen(TWO, 1), cvd("1"), gpu=1),
    Case("initialised without a mask", frozen(TWO, 0, 1), qd("1"), gpu=1, ordinal=1),
]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_the_variables_and_the_machine_decide_together(case: Case) -> None:
    choice = choose(case.env, case.machine, case.asked)
    assert choice.backend == case.backend
    assert (choice.gpu.index if choice.gpu else None) == case.gpu
    assert choice.ordinal == case.ordinal
    assert (choice.mig.uuid if choice.mig else "") == case.mig
    assert (choice.draw.index if choice.draw else None) == case.draw
    said = " ".join([*choice.notes, choice.fallback, choice.draw_fallback])
    assert case.says in said
    if not case.says and case.backend == "cuda":
        assert said.strip() == "", "a plain case has nothing to tell"


def both(case: str, machine: Machine, env: dict[str, str], *words: str, asked: str = "gpu"):
    return pytest.param(machine, env, words, asked, id=case)


REFUSED = [
    both("mask against QD", TWO, cvd("0") | qd("1"), "CUDA_VISIBLE_DEVICES='0'", "QD_VISIBLE_DEVICE='1'"),
    both("mask against EGL", TWO, cvd("0", EGL_DEVICE_ID="1"), "CUDA_VISIBLE_DEVICES='0'", "EGL_DEVICE_ID='1'"),
    both("QD against EGL", TWO, qd("0", EGL_DEVICE_ID="1"), "QD_VISIBLE_DEVICE='0'", "EGL_DEVICE_ID='1'"),
    both("QD outside the mask", EIGHT, cvd("2,3") | qd("0"), "QD_VISIBLE_DEVICE='0'", "'2,3'", "positions"),
    both("EGL outside the mask", EIGHT, cvd("2,3", EGL_DEVICE_ID="1"), "EGL_DEVICE_ID='1'", "'2,3'"),
    both("an exported QD against the rank", TWO, qd("0", LOCAL_RANK="1"), "QD_VISIBLE_DEVICE='0'", "LOCAL_RANK='1'"),
    both("an exported EGL against the rank", TWO, {"EGL_DEVICE_ID": "0", "LOCAL_RANK": "1"}, "EGL_", "LOCAL_RANK='1'"),
    both("QD counts fastest first", MIXED, cvd("GPU-00") | qd("0"), "GPU-00", "GPU 0", "GPU 1", "QD_VISIBLE_DEVICE"),
    both("QD that is no GPU", TWO, qd("2"), "QD_VISIBLE_DEVICE='2'", "GPU 0", "GPU 1"),
    both("QD that is no number", TWO, qd("first"), "QD_VISIBLE_DEVICE='first'"),
    both("QD of -1", TWO, qd("-1"), "QD_VISIBLE_DEVICE='-1'"),
    both("an unknown UUID in QD", TWO, qd("GPU-99"), "QD_VISIBLE_DEVICE='GPU-99'"),
    both("more ranks than GPUs", TWO, {"LOCAL_RANK": "2"}, "LOCAL_RANK=2", "only 2 GPUs", "--nproc_per_node=2"),
    both("more ranks than the one GPU", ONE, {"LOCAL_RANK": "1"}, "is only 1 GPU", "--nproc_per_node=1"),
    both("more ranks than the mask has", EIGHT, cvd("2,5", LOCAL_RANK="2"), "LOCAL_RANK=2", "'2,5'"),
    both("a rank that is no number", TWO, {"LOCAL_RANK": "one"}, "LOCAL_RANK='one'"),
    both("an order that nobody knows", UNRANKED, {}, "CUDA_DEVICE_ORDER", "PCI_BUS_ID", T, H),
    both("a number in an order that nobody knows", UNRANKED, cvd("1"), "CUDA_VISIBLE_DEVICES='1'", "PCI_BUS_ID"),
    both("an EGL device that is none", DRAWN, {"EGL_DEVICE_ID": "4"}, "EGL_DEVICE_ID='4'", "9 llvmpipe", "0 NVIDIA"),
    both("an EGL number of a GPU out of its place", HIDDEN, {"EGL_DEVICE_ID": "7"}, "'7'", "1 llvmpipe"),
    both("EGL without NVIDIA", DRAW_ONLY, {"EGL_DEVICE_ID": "2"}, "EGL_DEVICE_ID='2'", "0 AMD", "1 llvmpipe"),
    both("EGL of -1", DRAW_ONLY, {"EGL_DEVICE_ID": "-1"}, "EGL_DEVICE_ID='-1'"),
    both("a mask set too late", frozen(TWO, 0, 1), cvd("1"), "CUDA_VISIBLE_DEVICES='1'", "too late", "GPU 0", "GPU 1"),
    both("a mask removed too late", frozen(TWO, 1), {}, "not set", "too late", "GPU 1"),
    both("hidden before, shown too late", frozen(TWO), cvd("0"), "too late", "keeps showing no GPU"),
    both("CUDA by force without a GPU", NONE, {}, "backend 'cuda' is not available", "no NVIDIA GPU", asked="cuda"),
    both("CUDA by force on a Mac", MAC, {}, "no NVIDIA GPU was found on this macOS", asked="cuda"),
    both("CUDA by force, all hidden", TWO, cvd(""), "''", "hides every GPU", "GPU 0", asked="cuda"),
    both("CUDA by force without kernels for it", LATER, {}, "not in this version", "found: GPU 0", asked="cuda"),
    both("Metal by force on Linux", TWO, {}, "backend 'metal' is not available", "macOS only", asked="metal"),
]


@pytest.mark.parametrize(("machine", "env", "words", "asked"), REFUSED)
def test_a_contradiction_is_refused_with_both_names_and_values(machine, env, words, asked) -> None:
    with pytest.raises(DeviceError) as caught:
        choose(env, machine, asked)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint


def test_the_choice_is_pure() -> None:
    env = cvd("2,5", LOCAL_RANK="1")
    before = dict(env)
    assert choose(env, EIGHT) == choose(env, EIGHT) and env == before


def test_every_rank_of_a_mask_gets_a_gpu_of_its_own() -> None:
    taken = [choose(cvd("6,0,3", LOCAL_RANK=str(rank)), EIGHT) for rank in range(3)]
    assert [(c.gpu.index, c.ordinal) for c in taken if isinstance(c, Choice) and c.gpu] == [(6, 0), (0, 1), (3, 2)]
