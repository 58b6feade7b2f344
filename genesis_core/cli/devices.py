"""`genesis-studio devices`: the processors and GPUs of this machine and what each can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from genesis_core.backend.devices import DeviceInfo


def _bytes(n: int) -> str:
    return f"{n / 2**30:.1f} GiB" if n else ""


def devices(as_json: bool = False) -> int:
    """Prints the inventory; returns the exit code."""
    from genesis_core.backend.devices import inventory

    found = inventory()
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return 0

    from rich.console import Console
    from rich.table import Table

    table = Table(title="Devices", title_justify="left")
    columns = ("id", "name", "", "memory free / total", "load", "\u00b0C", "simulate", "render", "encode")
    for column in columns:
        table.add_column(column, overflow="fold")
    for d in found.devices:
        memory = f"{_bytes(d.memory_free)} / {_bytes(d.memory_total)}" if d.memory_total else ""
        load = "" if d.load is None else f"{d.load:.0%}"
        heat = "" if d.temperature is None else f"{d.temperature:.0f}"
        abilities = (_can(x) for x in (d.simulate, d.render, d.encode))
        table.add_row(d.id, d.name, _detail(d), memory, load, heat, *abilities)
    console = Console() if Console().is_terminal else Console(width=140)
    console.print(table)
    for d in found.devices:
        for p in d.processes:
            console.print(f"  {d.id} runs {p.name or 'process'} {p.pid} ({_bytes(p.memory) or '?'})", highlight=False)
    for d in found.devices:
        for what in ("simulate", "render", "encode"):
            why = getattr(d, what)
            if why:
                console.print(f"  {d.id} does not {what}: {why}", highlight=False)
    for note in found.notes:
        console.print(f"  {note}", highlight=False)
    return 0


def _detail(d: DeviceInfo) -> str:
    """What tells the device from its likes."""
    parts = [
        d.detail,
        d.uuid if d.kind == "cuda" else "",
        d.pci,
        f"EGL {d.egl}" if d.kind == "cuda" and d.egl is not None else "",
    ]
    return ", ".join(dict.fromkeys(part for part in parts if part))


def _can(why_not: str) -> str:
    return "[red]no[/]" if why_not else "[green]yes[/]"
