"""The folder of compiled kernels: keyed by its sources, never fatal, private, and not growing for ever."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from genesis_core.backend import cache


@pytest.fixture(autouse=True)
def fresh():
    """Results of one test must not reach the next, nor the rest of the run."""
    cache.cache_folder.cache_clear()
    cache.kernel_key.cache_clear()
    yield
    cache.cache_folder.cache_clear()
    cache.kernel_key.cache_clear()


def test_an_edit_in_any_kernel_source_changes_the_key(tmp_path, monkeypatch):
    for room in cache.SOURCES:
        (tmp_path / room / "deep").mkdir(parents=True)
        (tmp_path / room / "deep" / "stage.py").write_text("x = 1")
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    keys = [cache.kernel_key()]
    for room in cache.SOURCES:
        (tmp_path / room / "deep" / "stage.py").write_text("x = 2")
        cache.kernel_key.cache_clear()
        keys.append(cache.kernel_key())
    assert len(set(keys)) == len(keys)


def test_lanes_of_the_other_target_do_not_change_the_key(tmp_path, monkeypatch):
    (tmp_path / "lanes").mkdir()
    (tmp_path / "lanes" / "ops.py").write_text("x = 1")
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    before = cache.kernel_key()
    (tmp_path / "lanes" / "cuda.py").write_text("y = 1")
    cache.kernel_key.cache_clear()
    assert cache.kernel_key() == before


def test_a_cpu_with_other_features_has_another_key(monkeypatch):
    before = cache.kernel_key()
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx2")
    cache.kernel_key.cache_clear()
    assert cache.kernel_key() != before


def test_the_variable_names_the_place(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "here"))
    assert cache.cache_folder() == tmp_path / "here" / "kernels" / cache.kernel_key()
    assert cache.cache_folder().is_dir()


def test_a_place_that_cannot_be_written_falls_back_to_a_private_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    folder = cache.cache_folder()
    assert folder.is_dir() and tmp_path in folder.parents
    if hasattr(os, "getuid"):
        assert (tmp_path / f"genesis-studio-{os.getuid()}").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_a_fallback_folder_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    trap = tmp_path / f"genesis-studio-{os.getuid()}"
    trap.mkdir()
    trap.chmod(0o777)
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    assert trap not in cache.cache_folder().parents


def test_old_versions_are_removed_and_recent_ones_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    root = tmp_path / "kernels"
    now = time.time()
    for age_days in range(12):
        folder = root / f"v{age_days}"
        folder.mkdir(parents=True)
        (folder / "kernel.nbi").write_text("x")
        os.utime(folder, (now - age_days * 86400 - 60,) * 2)
    current = cache.cache_folder()
    left = {f.name for f in root.iterdir()}
    assert left == {current.name, *(f"v{d}" for d in range(cache.KEPT))}


def test_damaged_cache_files_are_not_fatal(tmp_path):
    """Every file of the cache cut short: the next process compiles again and gives the same result."""
    code = (
        "import mujoco\n"
        "from genesis_core.compiler.build import Model\n"
        "from genesis_core.backend.tables import Work, model_table\n"
        "from genesis_core.physics.kinematics import body_poses\n"
        'mj = mujoco.MjModel.from_xml_string(\'<mujoco><worldbody><body pos="0 0 1"><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>\')\n'
        "m = Model.from_mujoco(mj)\n"
        "w = Work(m, 64, 4, {'ncon_max': 8, 'nefc_max': 8, 'njac_max': 8})\n"
        "w.set_lanes('qpos', mj.qpos0)\n"
        "body_poses(model_table(m, 64, 4), w)\n"
        "print(w.lanes('xpos')[0].tolist())\n"
    )
    env = {**os.environ, "GENESIS_CACHE_DIR": str(tmp_path)}

    def run() -> str:
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run()
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert files, "nothing was cached"
    for file in files:
        file.write_bytes(file.read_bytes()[:20])
    assert run() == first


def test_two_checkouts_of_the_same_sources_share_their_kernels(tmp_path):
    """Numba's own folders are named by a hash of the source's path: a moved checkout compiled everything again."""
    script = (
        "from genesis_core.lanes.compile import kernel\n"
        "from genesis_core.physics import energy\n"
        "from genesis_core.backend.cache import cache_folder\n"
        "import inspect\n"
        "cache = kernel(energy.energies.py_func)._cache\n"
        "print(inspect.getfile(energy))\n"
        "print(cache.cache_path, cache._impl.filename_base, cache._impl.locator.get_source_stamp())\n"
    )
    found = []
    for name in ("one", "two"):
        shutil.copytree(cache.PACKAGE, tmp_path / name / "genesis_core", ignore=shutil.ignore_patterns("__pycache__"))
        env = os.environ | {"PYTHONPATH": str(tmp_path / name), "GENESIS_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        found.append(done.stdout.splitlines())
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]
