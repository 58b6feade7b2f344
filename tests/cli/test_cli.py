"""The command line: exit codes, bad input, near names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_tools import studio

import genesis_core

GOOD = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"


def test_help_and_version_succeed() -> None:
    done = studio("--help")
    assert done.returncode == 0
    for verb in ("record", "play", "info", "devices", "doctor", "bench", "run"):
        assert verb in done.stdout
    done = studio("--version")
    assert done.returncode == 0 and done.stdout.strip() == f"genesis-studio {genesis_core.__version__}"


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["recrod", "quadruped"], ["recrod", "genesis-studio record"]),
        (["quadrupd"], ["quadrupd", "quadruped"]),
        (["frobnicate"], ["frobnicate", "bundled scenes"]),
        (["record"], ["SCENE"]),
        (["record", "quadruped", "--stesp", "5"], ["--stesp", "--steps"]),
        (["record", "quadrupet"], ["quadrupet", "'quadruped'"]),
        (["record", "quadruped", "--envs", "0"], ["--envs 0"]),
        (["record", "quadruped", "--envs", "-1"], ["--envs -1"]),
        (["record", "quadruped", "--envs", "1000000000"], ["--envs 1000000000"]),
        (["record", "quadruped", "--envs", "many"], ["many"]),
        (["record", "quadruped", "--backend", "cudda"], ["cudda", "cuda"]),
        (["record", "quadruped", "--devices", "gpu7"], ["gpu7"]),
        (["record", "quadruped", "--devices", "cpu:0"], ["cpu:0"]),
        (["record", "quadruped", "--devices", "cpu:4", "--envs", "2"], ["2", "4 workers"]),
        (["record", "quadruped", "--precision", "16"], ["--precision 16"]),
        (["record", "quadruped", "--seed", "-3"], ["--seed -3"]),
        (["record", "quadruped", "--size", "big"], ["--size big"]),
        (["record", "quadruped", "--layout", "round"], ["--layout round"]),
        (["record", "quadruped", "--spacing", "a,b"], ["--spacing a,b"]),
        (["record", "quadruped", "--steps", "5", "--seconds", "5"], ["--steps", "--seconds"]),
        (["record", "quadruped", "--select", "99", "--envs", "4"], ["environment 99"]),
        (["play", "no.gsrec"], ["no.gsrec", "does not exist"]),
        (["run", "no.py"], ["no.py"]),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(arguments: list[str], texts: list[str], tmp_path: Path) -> None:
    done = studio(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    for text in texts:
        assert text in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == [] or [p.name for p in tmp_path.iterdir()] == ["out"]


def _bad_files(folder: Path) -> dict[str, tuple[str | bytes, str]]:
    """Name -> (content, what the message must hold)."""
    return {
        "empty.xml": ("", "empty"),
        "binary.xml": (bytes(range(256)) * 4, "binary"),
        "latin1.xml": (b"<mujoco model='\xe9'/>", "UTF-8"),
        "truncated.xml": (GOOD[:60], "truncated.xml:1"),
        "include.xml": ("<mujoco>\n<include file='gone.xml'/>\n</mujoco>", "include.xml:2"),
        "nan.xml": (GOOD.replace("'.1'", "'nan'"), "NaN"),
        "mesh.xml": ("<mujoco><asset><mesh file='no.stl'/></asset></mujoco>", "no.stl"),
        "massless.xml": (
            "<mujoco><worldbody><body><freejoint/><geom size='.1' mass='0'/></body></worldbody></mujoco>",
            "massless.xml",
        ),
        "keys.toml": ("n_envz = 3\n", "n_envs"),
        "syntax.toml": ("n_envs = = 3\n", "syntax.toml:1"),
        "notes.txt": ("hello", ".txt"),
        "broken.stl": ("solid but not really", "broken.stl"),
        "broken.zip": ("PK not really", "broken.zip"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_bad_files(Path())))
def test_a_bad_file_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    content, text = _bad_files(tmp_path)[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = studio("record", path, "--steps", "2", "--out", tmp_path / "o", "--no-video")
    assert done.returncode == 2, done.stderr
    assert text in done.stderr, done.stderr
    assert not (tmp_path / "o" / f"{path.stem}.gsrec").exists()


def test_a_directory_is_no_scene(tmp_path: Path) -> None:
    done = studio("record", tmp_path)
    assert done.returncode == 2 and "directory" in done.stderr


def test_tables_have_a_machine_readable_form() -> None:
    for arguments in (["devices", "--json"], ["info", "cartpole", "--json"]):
        done = studio(*arguments)
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


def test_info_of_a_bad_file_is_json_too(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<mujoco>")
    done = studio("info", tmp_path / "a.xml", "--json")
    assert done.returncode == 2
    assert "a.xml" in json.loads(done.stdout)["where"]


def test_a_script_for_genesis_finds_genesis_core(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport genesis as gs\nimport helper\n"
        "print(gs.__name__, gs.__version__, sys.argv[1:], helper.x, __name__)\n"
    )
    (tmp_path / "helper.py").write_text("x = 42\n")
    done = studio("run", script, "--lr", "0.1", "-v", "more")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        *("genesis_core", genesis_core.__version__, "['--lr',", "'0.1',", "'-v',", "'more']", "42", "__main__")
    ]


def test_processes_of_a_script_for_genesis_find_it_too(tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "import multiprocessing, os\nimport genesis as gs\n"
        "def run(k):\n"
        "    os.environ['QD_VISIBLE_DEVICE'] = str(k)\n"
        "    gs.init(backend=gs.cpu, logging_level='error')\n"
        "    print(k, gs.__name__, gs.device, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    for k in range(2):\n"
        "        p = context.Process(target=run, args=(k,)); p.start(); p.join(); assert p.exitcode == 0\n"
    )
    done = studio("run", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "genesis_core", "cpu", "1", "genesis_core", "cpu"]


def test_the_exit_code_of_a_script_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("import sys; sys.exit(7)")
    assert studio("run", tmp_path / "s.py").returncode == 7
    (tmp_path / "t.py").write_text("import sys; sys.exit('no way')")
    done = studio("run", tmp_path / "t.py")
    assert done.returncode == 1 and "no way" in done.stderr


def test_an_error_of_ours_in_a_script_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("import genesis as gs\n\ngs.init(backend=gs.cpu)\ngs.morphs.Boxx\n")
    done = studio_raw("run", tmp_path / "s.py")
    assert done.returncode != 0 and "s.py" in done.stderr and "Boxx" in done.stderr


def studio_raw(*arguments: str | Path):
    """As studio, for scripts whose own traceback is wanted."""
    import subprocess

    from cli_tools import LIMIT, command, environment

    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=LIMIT, env=environment(), check=False
    )


@pytest.mark.gl
@pytest.mark.slow
def test_without_a_display_the_scene_is_recorded_instead(tmp_path: Path) -> None:
    scene = tmp_path / "tiny.toml"
    (tmp_path / "ball.xml").write_text(GOOD)
    scene.write_text(
        "n_envs = 4\n[recording]\nsteps = 3\nsize = [64, 48]\n"
        '[[entities]]\ntype = "mjcf"\nname = "ball"\nfile = "ball.xml"\n'
    )
    done = studio(scene, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no display" in done.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        f"tiny-preview.{x}" for x in ("gsrec", "mp4", "png")
    ]
