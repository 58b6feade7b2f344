"""Which device this process works on: one pure function of the environment variables and of what the machine has.

`CUDA_VISIBLE_DEVICES`, `QD_VISIBLE_DEVICE` and `EGL_DEVICE_ID` name GPUs of the machine by CUDA's own numbers (those
without a mask; `CUDA_DEVICE_ORDER` says how CUDA counts). Where one is missing it follows the others; where two name
different GPUs nobody guesses. How CUDA reads its mask: CUDA programming guide, "Environment Variables"; the treatment
of repeated and of half-numeric entries is the driver's, as `torch.cuda` mirrors it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from genesis_core.errors import DeviceError

MASK, CORE, DRAW, ORDER, RANK = (
    "CUDA_VISIBLE_DEVICES",
    "QD_VISIBLE_DEVICE",
    "EGL_DEVICE_ID",
    "CUDA_DEVICE_ORDER",
    "LOCAL_RANK",
)
NAMES = {"linux": "Linux", "win32": "Windows", "darwin": "macOS"}


class AbsentError(DeviceError):
    """A backend that was asked for by name and that this machine does not have; `why` says what was looked for."""

    def __init__(self, backend: str, why: str) -> None:
        self.backend, self.why = backend, why
        super().__init__(f"backend '{backend}' is not available: {why}", hint="use auto (in scripts gs.gpu) or cpu")


class Mig(msgspec.Struct, frozen=True):
    """A slice of a GPU in MIG mode: one compute instance."""

    uuid: str
    gpu_instance: int = 0
    compute_instance: int = 0
    memory_total: int = 0  # [byte]


class Gpu(msgspec.Struct, frozen=True):
    """An NVIDIA GPU. `index` is NVML's (PCI order, as nvidia-smi shows it)."""

    index: int
    name: str
    uuid: str
    pci: str = ""
    speed_rank: int | None = None  # position in CUDA's fastest-first order; None = not known
    mig_mode: bool = False
    mig: tuple[Mig, ...] = ()

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.name})"


class DrawDevice(msgspec.Struct, frozen=True):
    """A device that EGL lists, with what ties it to a GPU."""

    index: int
    name: str
    software: bool = False
    pci: str = ""
    uuid: str = ""
    cuda: int | None = None  # EGL_CUDA_DEVICE_NV


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to choose from. `no_cuda` and `no_metal` say why that backend cannot be used ("" = it can)."""

    system: str = "linux"  # sys.platform
    gpus: tuple[Gpu, ...] = ()
    draw: tuple[DrawDevice, ...] | None = None  # None = EGL was not asked
    no_cuda: str = ""
    no_metal: str = "it exists on macOS only"
    seen: tuple[str, ...] | None = None  # UUIDs that CUDA shows this process; None = CUDA is not initialised in it


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Where to compute and where to draw."""

    backend: str  # "cuda", "metal", "cpu"
    gpu: Gpu | None = None
    mig: Mig | None = None
    ordinal: int = 0  # of that GPU among those that CUDA shows this process: torch's "cuda:<ordinal>"
    visible: tuple[Gpu, ...] = ()
    draw: DrawDevice | None = None  # None = EGL's default
    draw_fallback: str = ""  # why drawing does not happen on the GPU that computes
    fallback: str = ""  # why the backend is a worse one than asked for
    notes: tuple[str, ...] = ()


def choose(env: Mapping[str, str], machine: Machine, backend: str = "gpu") -> Choice:
    """The device for this process.

    env: the environment variables; machine: what there is; backend: "gpu" (CUDA, else Metal, else the CPU), or one of
    "cuda", "metal", "cpu" by force. Raises DeviceError where the variables contradict each other or the machine (with
    the names and values of both), where a forced backend is absent (with what was looked for and found), and where a
    mask was changed after CUDA had been initialised.
    """
    if backend == "cpu":
        return _draw(env, machine, Choice(backend="cpu"))
    if backend == "metal":
        if machine.no_metal:
            raise AbsentError("metal", machine.no_metal)
        return _draw(env, machine, Choice(backend="metal"))
    why, chosen = _cuda(env, machine)
    if chosen is not None:
        return _draw(env, machine, chosen)
    if backend == "cuda":
        raise AbsentError("cuda", why)
    if not machine.no_metal:
        return _draw(env, machine, Choice(backend="metal"))
    return _draw(env, machine, Choice(backend="cpu", fallback=f"CUDA: {why}. Metal: {machine.no_metal}"))


# ---------------------------------------------------------------------------------------------------------- computing
def _cuda(env: Mapping[str, str], machine: Machine) -> tuple[str, Choice | None]:
    """(why not, the choice)."""
    if machine.no_cuda:
        found = ", ".join(str(g) for g in machine.gpus)
        return machine.no_cuda + (f" (found: {found})" if found else ""), None
    if not machine.gpus:
        return f"no NVIDIA GPU was found on this {NAMES.get(machine.system, machine.system)} machine", None
    notes: list[str] = []
    shown = visible(env, machine.gpus, notes)
    _check_frozen(env, machine, shown)
    if not shown:
        found = ", ".join(str(g) for g in machine.gpus)
        return f"{MASK}={env[MASK]!r} hides every GPU ({'; '.join([*notes, found])})", None
    gpu, mig = _pick(
        env, machine, [pair for pair in shown if machine.seen is None or _id(*pair) in machine.seen], notes
    )
    if gpu.mig_mode and mig is None:
        return f"{gpu} is in MIG mode and has no compute instance (nvidia-smi mig -cgi ... -C makes one)", None
    ordinal = [g.index for g, _ in shown].index(gpu.index)
    if machine.seen is not None:
        ordinal = machine.seen.index(_id(gpu, mig))
    return "", Choice(
        backend="cuda",
        gpu=gpu,
        mig=mig,
        ordinal=ordinal,
        visible=tuple(g for g, _ in shown),
        notes=tuple(notes),
    )


Shown = list[tuple[Gpu, Mig | None]]


def visible(env: Mapping[str, str], gpus: Sequence[Gpu], notes: list[str] | None = None) -> Shown:
    """What CUDA shows a process with these variables, in CUDA's order. `notes` receives what the mask loses."""
    notes = [] if notes is None else notes
    mask = env.get(MASK)
    if mask is None:
        everything: Shown = [(g, _first_slice(g)) for g in _ordered(env, gpus, "counting GPUs")]
    elif mask.startswith("MIG-"):
        everything = _mig_list(mask, gpus, notes)
    elif mask.startswith("GPU-"):
        everything = _uuid_list(mask, gpus, notes)
    else:
        everything = _index_list(env, mask, gpus, notes)
    if any(mig is not None for _, mig in everything):
        first = next(pair for pair in everything if pair[1] is not None)
        if len(everything) > 1:
            notes.append(f"CUDA shows a process one MIG slice only: {first[1].uuid if first[1] else ''} of {first[0]}")
        return [first]
    return everything


def _id(gpu: Gpu, mig: Mig | None) -> str:
    return gpu.uuid if mig is None else mig.uuid


def _first_slice(gpu: Gpu) -> Mig | None:
    return gpu.mig[0] if gpu.mig_mode and gpu.mig else None


def _ordered(env: Mapping[str, str], gpus: Sequence[Gpu], need: str) -> list[Gpu]:
    """GPUs as CUDA counts them; `need` says for what."""
    by_pci = sorted(gpus, key=lambda g: g.index)
    order = env.get(ORDER, "").strip()
    if order == "PCI_BUS_ID" or len({g.name for g in gpus}) <= 1:
        return by_pci
    if all(g.speed_rank is not None for g in gpus):
        return sorted(gpus, key=lambda g: (g.speed_rank or 0, g.index))
    raise DeviceError(
        f"{need} is not possible: {ORDER}={order!r} lets CUDA count the fastest GPU first, which one that is could not "
        f"be found out, and the GPUs differ ({', '.join(str(g) for g in by_pci)})",
        hint=f"set {ORDER}=PCI_BUS_ID, or name GPUs by UUID in {MASK}",
    )


def _index_list(env: Mapping[str, str], mask: str, gpus: Sequence[Gpu], notes: list[str]) -> Shown:
    numbers: list[int] = []
    entries = [part.strip() for part in mask.split(",")]
    for entry in entries:
        number = _leading_number(entry)
        if number in numbers:
            notes.append(f"{MASK}={mask!r} names GPU {number} twice; CUDA then shows none")
            return []
        if not 0 <= number < len(gpus):
            if mask.strip() not in ("", "-1") and not (entry == "" and len(numbers) == len(entries) - 1):
                notes.append(f"{MASK}={mask!r}: {entry!r} is no GPU here; CUDA ignores it and everything behind it")
            break
        numbers.append(number)
    if not numbers:
        return []
    order = _ordered(env, gpus, f"reading {MASK}={mask!r}")
    return [(order[n], _first_slice(order[n])) for n in numbers]


def _leading_number(text: str) -> int:
    """As C's strtoul reads it: "1gpu" is 1; -1 where no digit leads."""
    digits = 1 if text[:1] in ("+", "-") else 0
    while digits < len(text) and text[digits] in "0123456789":
        digits += 1
    try:
        return int(text[:digits])
    except ValueError:
        return -1


def _uuid_list(mask: str, gpus: Sequence[Gpu], notes: list[str]) -> Shown:
    out: Shown = []
    for entry in mask.split(","):
        found = [g for g in gpus if g.uuid.startswith(entry.strip())] if entry.strip().startswith("GPU-") else []
        if len(found) != 1:
            many = f" fits {len(found)} GPUs" if found else " is no GPU here"
            notes.append(f"{MASK}={mask!r}: {entry!r}{many}; CUDA ignores it and everything behind it")
            break
        if any(g is found[0] for g, _ in out):
            notes.append(f"{MASK}={mask!r} names {found[0]} twice; CUDA then shows none")
            return []
        out.append((found[0], _first_slice(found[0])))
    return out


def _mig_list(mask: str, gpus: Sequence[Gpu], notes: list[str]) -> Shown:
    out: Shown = []
    for entry in mask.split(","):
        found = [(g, m) for g in gpus for m in g.mig if _names_slice(entry.strip(), g, m)]
        if len(found) != 1:
            many = f" fits {len(found)} MIG slices" if found else " is no MIG slice here"
            notes.append(f"{MASK}={mask!r}: {entry!r}{many}; CUDA ignores it and everything behind it")
            break
        out += found
    return out


def _names_slice(entry: str, gpu: Gpu, mig: Mig) -> bool:
    """MIG-<uuid> (drivers from 470 on, also cut short) or MIG-<GPU uuid>/<GPU instance>/<compute instance>."""
    if entry.startswith("MIG-GPU-"):
        parts = entry[len("MIG-") :].split("/")
        numbers = [str(mig.gpu_instance), str(mig.compute_instance)]
        return len(parts) == 3 and parts[0] == gpu.uuid and parts[1:] == numbers
    return len(entry) > len("MIG-") and mig.uuid.startswith(entry)


def _check_frozen(env: Mapping[str, str], machine: Machine, shown: Shown) -> None:
    if machine.seen is None:
        return
    expected = tuple(_id(gpu, mig) for gpu, mig in shown)
    if expected == machine.seen:
        return
    if any(g.mig_mode for g in machine.gpus) and set(expected) & set(machine.seen):
        return  # which of several slices CUDA shows is its own affair
    names = {g.uuid: str(g) for g in machine.gpus} | {m.uuid: f"{m.uuid} of {g}" for g in machine.gpus for m in g.mig}
    frozen = ", ".join(names.get(u, u) for u in machine.seen) or "no GPU"
    value = f"{MASK}={env[MASK]!r}" if MASK in env else f"{MASK} (not set)"
    raise DeviceError(
        f"{value} came too late: CUDA was initialised before in this process and keeps showing {frozen}",
        hint="set it before the first call that asks CUDA anything (torch.cuda.is_available() is enough): at the very "
        "top of the script, in the shell, or by gs.launch(...)",
    )


def _pick(env: Mapping[str, str], machine: Machine, shown: Shown, notes: list[str]) -> tuple[Gpu, Mig | None]:
    """The GPU that all variables agree on."""
    named: list[tuple[str, Gpu]] = []
    if len(shown) == 1 and MASK in env:
        named.append((f"{MASK}={env[MASK]!r}", shown[0][0]))
    core = _named_gpu(env, machine, CORE)
    if core is not None:
        named.append((f"{CORE}={env[CORE]!r}", core))
    if _is_gpu_number(env, machine):
        drawn = _named_gpu(env, machine, DRAW)
        if drawn is not None:
            named.append((f"{DRAW}={env[DRAW]!r}", drawn))
    rank = env.get(RANK, "").strip()
    if rank and not (len(shown) == 1 and MASK in env):
        chosen = _of_rank(env, rank, shown)
        if not named or any(gpu.index != chosen.index for _, gpu in named):
            named.append((f"{RANK}={rank!r}", chosen))
    elif rank and rank != "0":
        notes.append(f"{MASK}={env[MASK]!r} leaves no choice for {RANK}={rank}: ranks with the same mask share the GPU")
    for text, gpu in named[1:]:
        if gpu.index != named[0][1].index:
            raise DeviceError(
                f"{named[0][0]} is {named[0][1]}, but {text} is {gpu}",
                hint="let all of them name the same GPU, or set only one of them: the others follow",
            )
    gpu = named[0][1] if named else shown[0][0]
    for candidate, mig in shown:
        if candidate.index == gpu.index:
            return candidate, mig
    mask = ", ".join(str(g) for g, _ in shown)
    raise DeviceError(
        f"{named[0][0]} is {gpu}, but {MASK}={env.get(MASK, '')!r} shows only {mask}",
        hint=f"these variables name GPUs of the machine, not positions in {MASK}",
    )


def _named_gpu(env: Mapping[str, str], machine: Machine, name: str) -> Gpu | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    if text.startswith("GPU-"):
        found = [g for g in machine.gpus if g.uuid.startswith(text)]
        if len(found) == 1:
            return found[0]
    elif text.isdecimal() and int(text) < len(machine.gpus):
        return _ordered(env, machine.gpus, f"reading {name}={text!r}")[int(text)]
    raise DeviceError(
        f"{name}={text!r} is no GPU of this machine",
        hint=f"there are {', '.join(str(g) for g in sorted(machine.gpus, key=lambda g: g.index))}",
    )


def _is_gpu_number(env: Mapping[str, str], machine: Machine) -> bool:
    """Whether EGL_DEVICE_ID names a GPU; higher numbers name EGL devices that are none (see `_draw`)."""
    text = env.get(DRAW, "").strip()
    return text.startswith("GPU-") or (text.isdecimal() and int(text) < len(machine.gpus))


def _of_rank(env: Mapping[str, str], rank: str, shown: Shown) -> Gpu:
    if not rank.isdecimal():
        raise DeviceError(f"{RANK}={rank!r} is no number", hint="torchrun sets it; do not set it by hand")
    if int(rank) >= len(shown):
        behind = f" in {MASK}={env[MASK]!r}" if MASK in env else " on this machine"
        raise DeviceError(
            f"{RANK}={rank}: there {'is' if len(shown) == 1 else 'are'} only {len(shown)} "
            f"GPU{'' if len(shown) == 1 else 's'}{behind}",
            hint=f"start torchrun with --nproc_per_node={len(shown)}, or give each rank its {MASK}",
        )
    return shown[int(rank)][0]


# ------------------------------------------------------------------------------------------------------------ drawing
def _draw(env: Mapping[str, str], machine: Machine, choice: Choice) -> Choice:
    """Adds the EGL device: that of the GPU that computes, else what EGL_DEVICE_ID names."""
    if machine.draw is None:
        return choice
    text = env.get(DRAW, "").strip()
    gpu = choice.gpu
    if gpu is None and text and _is_gpu_number(env, machine):
        gpu = _named_gpu(env, machine, DRAW)  # computing elsewhere, drawing on that GPU
    if text and not _is_gpu_number(env, machine):
        return msgspec.structs.replace(choice, draw=_by_number(text, machine))
    if gpu is None:
        return choice
    found = _drawing_part(env, machine, gpu)
    if found is not None:
        return msgspec.structs.replace(choice, draw=found)
    software = next((d for d in machine.draw if d.software), None)
    there = ", ".join(f"{d.index} {d.name}" for d in machine.draw) or "none"
    why = f"EGL has no device for {gpu} (EGL devices: {there}); in a container NVIDIA_DRIVER_CAPABILITIES must hold"
    why += " 'graphics', else the driver's EGL is not installed"
    return msgspec.structs.replace(choice, draw=software, draw_fallback=why)


def _by_number(text: str, machine: Machine) -> DrawDevice:
    """EGL_DEVICE_ID beyond the GPUs: EGL's own number of a device that is no GPU (a software renderer, another
    maker's card)."""
    for device in machine.draw or ():
        if text == str(device.index) and not any(_same(device, gpu) for gpu in machine.gpus):
            return device
    gpus = [f"{g.index} {g.name}" for g in machine.gpus]
    others = [f"{d.index} {d.name}" for d in machine.draw or () if not any(_same(d, g) for g in machine.gpus)]
    raise DeviceError(
        f"{DRAW}={text!r}: there is no such device",
        hint=f"GPUs: {', '.join(gpus) or 'none'}; other EGL devices: {', '.join(others) or 'none'}",
    )


def _same(device: DrawDevice, gpu: Gpu) -> bool:
    if device.uuid and gpu.uuid:
        return device.uuid == gpu.uuid
    return bool(device.pci and gpu.pci) and _pci(device.pci) == _pci(gpu.pci)


def _pci(address: str) -> tuple[int, ...]:
    """Domain, bus, device and function as numbers: NVML writes the domain with eight digits, sysfs with four."""
    try:
        return tuple(int(part, 16) for part in address.replace(".", ":").split(":"))
    except ValueError:
        return ()


def _drawing_part(env: Mapping[str, str], machine: Machine, gpu: Gpu) -> DrawDevice | None:
    """The EGL device of a GPU: by UUID or PCI address, else by the CUDA ordinal where no mask can have shifted it."""
    exact = [d for d in machine.draw or () if _same(d, gpu)]
    if exact:
        return exact[0]
    if MASK in env:
        return None
    place = [g.index for g in _ordered(env, machine.gpus, "finding the EGL device")].index(gpu.index)
    found = [d for d in machine.draw or () if d.cuda == place and not d.uuid and not d.pci]
    return found[0] if len(found) == 1 else None
