"""`genesis-studio info SCENE`: what is in a scene file, what is not simulated, what was repaired."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from genesis_core.errors import GenesisError

if TYPE_CHECKING:
    from genesis_core.compiler.load import LoadedScene

_LISTED = 40  # rows of joints and actuators shown unless everything is asked for


def info(scene: str | None, as_json: bool = False, schema: bool = False, full: bool = False) -> int:
    """Prints what a scene holds; returns the exit code (2 for a file that cannot be used).

    `schema` prints the JSON schema of scene files instead. `full` lists every joint and actuator.
    """
    if schema:
        from genesis_core.compiler.scenefile import scene_schema

        print(json.dumps(scene_schema(), indent=2))
        return 0
    if scene is None:
        print("name a scene file, for example: genesis-studio info robot.xml", file=sys.stderr)
        return 2
    from genesis_core.compiler.load import load_scene

    try:
        loaded = load_scene(scene)
    except GenesisError as error:
        if as_json:
            print(json.dumps({"error": str(error), "what": error.what, "where": error.where, "hint": error.hint}))
        else:
            print(str(error), file=sys.stderr)
        return 2
    facts = scene_facts(loaded)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _print_tables(facts, full)
    return 0


def scene_facts(loaded: LoadedScene) -> dict[str, Any]:
    """What `info --json` prints, as plain data."""
    bundle, mj = loaded.bundle, loaded.mj
    integrators, solvers, cones = ("Euler", "RK4", "implicit", "implicitfast", "discrete"), ("PGS", "CG", "Newton"), (
        "pyramidal",
        "elliptic",
    )  # fmt: skip
    return {
        "name": bundle.name,
        "file": bundle.source,
        "description": loaded.spec.description,
        "files": [str(f) for f in loaded.files],
        "counts": {
            "bodies": mj.nbody - 1,
            "joints": mj.njnt,
            "degrees of freedom": mj.nv,
            "coordinates": mj.nq,
            "actuators": mj.nactuator,
            "controls": mj.nu,
            "geoms": mj.ngeom,
            "geoms that collide": int(bundle.geom_collides.sum()),
            "sites": mj.nsite,
            "meshes": len(bundle.meshes),
            "triangles": int(sum(len(m.faces) for m in bundle.meshes)),
            "textures": len(bundle.textures),
            "materials": len(bundle.materials),
            "cameras": len(bundle.cameras),
            "lights": len(bundle.lights),
            "keyframes": mj.nkey,
            "tendons": mj.ntendon,
            "equality constraints": mj.neq,
            "sensors": mj.nsensor,
        },
        "mass": float(mj.body_mass.sum()),
        "extent": bundle.stat_extent,
        "options": {
            "timestep": float(mj.opt.timestep),
            "gravity": [float(x) for x in mj.opt.gravity],
            "integrator": integrators[int(mj.opt.integrator)],
            "solver": solvers[int(mj.opt.solver)],
            "cone": cones[int(mj.opt.cone)],
            "iterations": int(mj.opt.iterations),
        },
        "environments": loaded.spec.n_envs,
        "entities": [{"name": e.name, "type": e.type, "file": e.file} for e in loaded.spec.entities],
        "joints": _joints(loaded),
        "actuators": _actuators(loaded),
        "cameras": [c.name for c in bundle.cameras],
        "keyframes": bundle.key_name,
        "unsupported": list(bundle.unsupported),
        "warnings": list(loaded.warnings),
    }


def _joints(loaded: LoadedScene) -> list[dict[str, Any]]:
    b = loaded.bundle
    kinds = ("free", "ball", "slide", "hinge")
    return [
        {
            "name": loaded.start.jnt_name[j],
            "type": kinds[int(b.jnt_type[j])],
            "body": b.body_name[int(b.jnt_bodyid[j])],
            "range": [float(x) for x in b.jnt_range[j]] if b.jnt_limited[j] else None,
        }
        for j in range(len(b.jnt_type))
    ]


def _actuators(loaded: LoadedScene) -> list[dict[str, Any]]:
    b = loaded.bundle
    return [
        {"name": name, "range": [float(x) for x in b.actuator_ctrlrange[i]] if b.actuator_ctrllimited[i] else None}
        for i, name in enumerate(b.actuator_name)
    ]


def _print_tables(facts: dict[str, Any], full: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"[bold]{_plain(facts['name'])}[/]  {_plain(facts['file'])}", highlight=False)
    if facts["description"]:
        console.print(_plain(facts["description"]), highlight=False)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, count in facts["counts"].items():
        if count:
            table.add_row(name, f"{count:,}")
    table.add_row("mass", f"{facts['mass']:.4g} kg")
    table.add_row("size", f"{facts['extent']:.3g} m")
    options = facts["options"]
    table.add_row("time step", f"{options['timestep'] * 1000:g} ms")
    table.add_row("gravity", " ".join(f"{x:g}" for x in options["gravity"]) + " m/s²")
    table.add_row("integrator", options["integrator"])
    table.add_row("solver", f"{options['solver']}, {options['cone']} cones, {options['iterations']} iterations")
    if facts["environments"] > 1:
        table.add_row("environments", f"{facts['environments']:,}")
    console.print(table)
    for title, kind in (("Joints", "joints"), ("Actuators", "actuators")):
        rows = facts[kind]
        if not rows:
            continue
        shown = rows if full else rows[:_LISTED]
        listing = Table(title=title, title_justify="left")
        for column in rows[0]:
            listing.add_column(column)
        for row in shown:
            listing.add_row(*(_cell(v) for v in row.values()))
        console.print(listing)
        if len(shown) < len(rows):
            console.print(f"  and {len(rows) - len(shown)} more (--full lists all)", highlight=False)
    for title, key, colour in (("Not simulated", "unsupported", "red"), ("Warnings", "warnings", "yellow")):
        if facts[key]:
            console.print(f"[bold {colour}]{title}[/]")
            for text in facts[key]:
                console.print(f"  • {_plain(text)}", highlight=False)
    if not facts["unsupported"]:
        console.print("[green]Everything in the scene is simulated.[/]")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " … ".join(f"{x:.4g}" for x in value)
    return _plain(str(value))


def _plain(text: str) -> str:
    """Text in which rich sees no mark-up."""
    from rich.markup import escape

    return escape(text)
