"""`devices` shows what each device can do and why not; `doctor` tries each path and says the remedy."""

from __future__ import annotations

import json
import os

import pytest
from fake_gpus import FakeGpu, FakeSlice, install

from genesis_core.backend.devices import CUDA_PHYSICS, DeviceInfo
from genesis_core.cli import doctor as doctor_module
from genesis_core.cli.devices import devices
from genesis_core.cli.doctor import Check, doctor, gpu_checks, run_check
from genesis_core.cli.probes import Outcome, probe
from genesis_core.render.egl import EglDevice


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeGpu(pids=[os.getpid()]), FakeGpu(lost=True), FakeGpu(slices=[FakeSlice("MIG-aaaa", 1)]))
    listed = [EglDevice(0, "H200", False, "/dev/dri/card1", pci="0000:01:00.0"), EglDevice(1, "llvmpipe", True)]
    monkeypatch.setattr("genesis_core.render.egl.list_egl_devices", lambda: listed)


def test_the_table_shows_every_device_and_every_reason(machine, capsys) -> None:
    assert devices() == 0
    out = capsys.readouterr().out
    for text in ("cuda:0", "MIG-aaaa", "egl:1", "130.0 GiB / 140.0 GiB", "37%", f"{os.getpid()}", "EGL 0"):
        assert text in out, text
    for reason in (
        "cuda:1 does not simulate: GPU 1 does not answer NVML: GPU is lost",
        "cuda:2 does not simulate: in MIG mode",
        "cuda:2 does not render: EGL lists no device",
        "MIG-aaaa does not render",
        "egl:1 does not simulate",
    ):
        assert reason in out, reason
    assert "cuda:0 does not simulate" not in out and "cuda:0 does not render" not in out


def test_json_has_the_same(machine, capsys) -> None:
    assert devices(as_json=True) == 0
    told = {d["id"]: d for d in json.loads(capsys.readouterr().out)["devices"]}
    assert told["cuda:0"]["uuid"] == "GPU-00aa-0000" and told["cuda:0"]["egl"] == 0
    assert told["cuda:0"]["processes"][0]["pid"] == os.getpid()


# ---------------------------------------------------------------------------------------------------------- doctor
def test_a_program_that_hangs_is_ended_and_told() -> None:
    outcome = probe("import time; time.sleep(60)", 1.0)
    assert not outcome.worked and outcome.said == "no answer within 1 s" and outcome.hint


@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        ("print('one'); print('two')", "two", ""),
        ("1 / 0", "ZeroDivisionError: division by zero", ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by signal 11", ""),
        ("import sys; sys.exit(5)", "exit code 5", ""),
        (
            "from genesis_core.errors import DeviceError; raise DeviceError('no GPU 7', hint='take 6')",
            "no GPU 7",
            "take 6",
        ),
    ],
)
def test_whatever_a_program_does_has_one_line(code: str, said: str, hint: str) -> None:
    outcome = probe(code, 30.0)
    assert (outcome.said, outcome.hint) == (said, hint)
    assert outcome.worked == (said == "two")


def test_variables_reach_the_program_or_are_taken_away(monkeypatch) -> None:
    monkeypatch.setenv("GONE", "1")
    code = "import os; print(os.environ.get('GONE'), os.environ['HERE'])"
    assert probe(code, 30.0, {"GONE": None, "HERE": "2"}).said == "None 2"


def test_contradicting_variables_fail_a_check_with_their_own_remedy(monkeypatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "")
    monkeypatch.setenv("EGL_DEVICE_ID", "77")
    check = doctor_module.check_choice()
    assert check.state == "failed" and "EGL_DEVICE_ID='77'" in check.detail and "EGL devices" in check.remedy


def listed(*found: DeviceInfo) -> Outcome:
    import msgspec

    return Outcome(True, msgspec.json.encode({"devices": found, "notes": []}).decode())


H200 = {"kind": "cuda", "name": "H200"}


def test_every_gpu_is_tried_at_what_it_claims(monkeypatch) -> None:
    found = (
        DeviceInfo(id="cuda:0", **H200),
        DeviceInfo(id="cuda:1", simulate=CUDA_PHYSICS, render="no EGL", **H200),
        DeviceInfo(id="cuda:2", simulate="in MIG mode: its slices simulate", **H200),
        DeviceInfo(id="MIG-aa", detail="of cuda:2", render="MIG slices do not draw", **H200),
        DeviceInfo(id="cuda:3", simulate="GPU is lost", render="GPU is lost", **H200),
    )
    monkeypatch.setattr(doctor_module, "probe", lambda *args: listed(*found))
    names = [name for name, _ in gpu_checks()]
    assert names == [
        "torch tensor on cuda:0",
        "simulation on cuda:0",
        "off-screen picture on cuda:0",
        "torch tensor on cuda:1",
        "torch tensor on MIG-aa",
        "simulation on MIG-aa",
    ]


def test_a_check_on_a_gpu_runs_with_its_variables_and_fails_with_its_remedy(monkeypatch) -> None:
    monkeypatch.setattr(doctor_module, "probe", lambda *args: listed(DeviceInfo(id="cuda:4", **H200)))
    name, check = gpu_checks()[0]
    asked = {}

    def failing(code, limit, environment):
        asked.update(environment, limit=limit)
        return Outcome(False, "CUDA error: out of memory")

    monkeypatch.setattr(doctor_module, "probe", failing)
    outcome = run_check(name, check)
    assert (outcome.state, outcome.detail) == ("failed", "CUDA error: out of memory") and "driver" in outcome.remedy
    assert asked["CUDA_VISIBLE_DEVICES"] == asked["EGL_DEVICE_ID"] == "4" and asked["limit"] == doctor_module.LIMIT


def test_a_check_that_breaks_is_a_failed_check_and_the_others_go_on(monkeypatch, capsys) -> None:
    def broken() -> Check:
        raise RuntimeError("torn")

    def fine() -> Check:
        return Check(name="fine", state="ok", detail="good")

    monkeypatch.setattr(doctor_module, "CHECKS", (("broken", broken), ("fine", fine)))
    monkeypatch.setattr(doctor_module, "gpu_checks", list)
    assert doctor(as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(c["name"], c["state"]) for c in told] == [("broken", "failed"), ("fine", "ok")]
    assert "RuntimeError: torn" in told[0]["detail"]
    assert doctor() == 1
    assert "1 of 2 checks failed" in capsys.readouterr().out


@pytest.mark.slow
def test_the_paths_of_this_machine_are_tried_for_real() -> None:
    for check in (doctor_module.check_gpu, doctor_module.check_kernel, doctor_module.check_torch):
        outcome = check()
        assert outcome.state in ("ok", "warning"), outcome
        assert outcome.detail
