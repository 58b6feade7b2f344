"""`genesis-studio devices`: the processors and GPUs of this machine and what each can do."""

from __future__ import annotations

import msgspec


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
    for column in ("id", "name", "", "memory free / total", "load", "simulate", "render", "encode"):
        table.add_column(column, overflow="fold")
    for d in found.devices:
        memory = f"{_bytes(d.memory_free)} / {_bytes(d.memory_total)}" if d.memory_total else ""
        load = "" if d.load is None else f"{d.load:.0%}"
        table.add_row(d.id, d.name, d.detail, memory, load, *(_can(x) for x in (d.simulate, d.render, d.encode)))
    console = Console()
    console.print(table)
    for d in found.devices:
        for what in ("simulate", "render", "encode"):
            why = getattr(d, what)
            if why:
                console.print(f"  {d.id} does not {what}: {why}", highlight=False)
    for note in found.notes:
        console.print(f"  {note}", highlight=False)
    return 0


def _can(why_not: str) -> str:
    return "[red]no[/]" if why_not else "[green]yes[/]"
