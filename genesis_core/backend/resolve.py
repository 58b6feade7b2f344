"""What `--devices TEXT --backend NAME` asks for, and the environment in which a worker finds its device."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence

from genesis_core.backend import devices as machine_devices
from genesis_core.backend.choice import CORE, DRAW, MASK, ORDER, RANK, Gpu, choose, visible
from genesis_core.backend.devices import THREADS, cpu_count, read_machine
from genesis_core.errors import DeviceError

BACKENDS = ("auto", "cpu", "cuda", "metal")
MAX_CPU_SHARDS = 1024


def resolve_devices(text: str | None, backend: str = "auto") -> tuple[str, ...]:
    """The worker devices that `--devices TEXT --backend NAME` asks for, one id per worker process.

    None is the best single device of the backend ("auto": a GPU that can simulate, else the CPU), "all" every GPU that
    CUDA_VISIBLE_DEVICES leaves (else the CPU), "0,2" or "cuda:0,cuda:2" GPUs by nvidia-smi's numbers, a UUID a GPU or a
    MIG slice, "cpu:4" four CPU shards ("cpu:0" ... "cpu:3"), "cpu" one. Raises DeviceError with the value, what is
    there, and what to write instead.
    """
    if backend not in BACKENDS:
        near = difflib.get_close_matches(backend, BACKENDS, 1)
        raise DeviceError(
            f"unknown backend {backend!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"one of {', '.join(BACKENDS)}",
        )
    if backend == "metal" and machine_devices.no_metal():
        raise DeviceError(
            f"backend 'metal' is not available: {machine_devices.no_metal()}", hint="use --backend cpu or auto"
        )
    wanted = (text or "").strip()
    parts = [part.strip() for part in wanted.split(",")]
    if wanted in ("", "auto", "all"):
        return _best(backend, every=wanted == "all")
    if backend == "cuda":
        choose(os.environ, read_machine()[0], "cuda")  # says why where there is none
    else:
        if wanted == "cpu":
            return ("cpu",)
        if len(parts) == 1 and parts[0].startswith("cpu:"):
            return _cpu_shards(parts[0])
        if all(part.startswith("cpu") for part in parts):
            raise DeviceError(
                f"devices {wanted!r} name the CPU more than once",
                hint=f"for {len(parts)} worker processes on the CPU write cpu:{len(parts)}",
            )
    if backend in ("cpu", "metal") or any(part.startswith("cpu") for part in parts):
        where = f"backend {backend!r} runs" if backend in ("cpu", "metal") else "CPU and GPUs do not mix: a worker runs"
        odd = next((p for p in parts if p.startswith("cpu") == (backend == "cuda")), parts[0])
        raise DeviceError(f"device {odd!r} does not go with {wanted!r}: {where} on one kind", hint=_there())
    return _gpus(parts, wanted)


def _best(backend: str, every: bool) -> tuple[str, ...]:
    if backend in ("cpu", "metal"):
        return ("cpu",)  # Metal's physics runs on the CPU lanes
    machine, _ = read_machine()
    choice = choose(os.environ, machine, "cuda" if backend == "cuda" else "gpu")
    if choice.gpu is None:
        return ("cpu",)
    if every:
        return tuple(_id(gpu, mig) for gpu, mig in visible(os.environ, machine.gpus))
    return (_id(choice.gpu, choice.mig),)


def _id(gpu: Gpu, mig: object) -> str:
    return f"cuda:{gpu.index}" if mig is None else getattr(mig, "uuid", "")


def _there() -> str:
    notes: list[str] = []
    gpus = machine_devices.cuda_devices(notes)
    names = ", ".join(f"{g.id} {g.name}" for g in gpus)
    return f"on this machine: cpu, cpu:N for N worker processes{', ' + names if names else ''}"


def _gpus(parts: list[str], wanted: str) -> tuple[str, ...]:
    machine, _ = read_machine()
    found: list[str] = []
    for part in parts:
        device = _gpu(part, machine.gpus)
        if device is None:
            there = machine.no_cuda if not machine.gpus else ", ".join(str(g) for g in machine.gpus)
            raise DeviceError(f"unknown device {part!r} ({there})", hint=_there())
        if device in found:
            raise DeviceError(
                f"devices {wanted!r} name {device} twice", hint="each GPU runs one worker; more environments: --envs"
            )
        found.append(device)
    if machine.no_cuda:
        raise DeviceError(f"device {wanted!r}: {machine.no_cuda}", hint="use --devices cpu")
    if MASK in os.environ:
        shown = [_id(gpu, mig) for gpu, mig in visible(os.environ, machine.gpus)]
        there = ", ".join(shown) or "none"
        for device in found:
            if device not in shown:
                raise DeviceError(
                    f"device {device} is hidden by {MASK}={os.environ[MASK]!r}, which shows {there}",
                    hint=f"--devices counts as nvidia-smi does; unset {MASK}, or name a device that it shows",
                )
    return tuple(found)


def _gpu(part: str, gpus: tuple[Gpu, ...]) -> str | None:
    """The id of the one GPU or slice that `part` names."""
    number = part.removeprefix("cuda:")
    if number.isdecimal():
        return next((f"cuda:{g.index}" for g in gpus if g.index == int(number)), None)
    if part.startswith("GPU-"):
        found = [f"cuda:{g.index}" for g in gpus if g.uuid.startswith(part)]
    elif part.startswith("MIG-") and part != "MIG-":
        found = [m.uuid for g in gpus for m in g.mig if m.uuid.startswith(part)]
    else:
        return None
    return found[0] if len(found) == 1 else None


def _cpu_shards(part: str) -> tuple[str, ...]:
    count = part[len("cpu:") :]
    if not count.isdecimal() or not 1 <= int(count) <= MAX_CPU_SHARDS:
        raise DeviceError(
            f"device {part!r} needs a number of CPU workers from 1 to {MAX_CPU_SHARDS}",
            hint=f"this machine has {cpu_count()} usable cores; more workers than cores are slower",
        )
    return tuple(f"cpu:{i}" for i in range(int(count)))


def slice_numbers(devices: Sequence[str]) -> dict[str, int]:
    """The GPU number of each MIG slice among `devices`; NVML is asked only where there is one."""
    if not any(device.startswith("MIG-") for device in devices):
        return {}
    gpus = read_machine()[0].gpus
    return {m.uuid: g.index for g in gpus for m in g.mig}


def device_environment(device: str, threads: int, slices: Mapping[str, int] | None = None) -> dict[str, str | None]:
    """Variables for a process that works on `device` with `threads` CPU threads; None removes one.

    A GPU is named by nvidia-smi's number in all three variables, with CUDA told to count so; the rank of a torchrun
    around the launcher does not choose any more. slices: the GPU number of each MIG slice.
    """
    share = str(threads)
    out: dict[str, str | None] = {
        "GENESIS_WORKER": device,
        THREADS: share,
        "OMP_NUM_THREADS": share,
        "NUMBA_NUM_THREADS": share,
    }
    if device.startswith("cuda:"):
        number = device.removeprefix("cuda:")
        out |= {ORDER: "PCI_BUS_ID", MASK: number, CORE: number, DRAW: number, RANK: None}
    elif device.startswith("MIG-"):
        number = str((slices or {})[device])
        out |= {ORDER: "PCI_BUS_ID", MASK: device, CORE: number, DRAW: number, RANK: None}
    return out
