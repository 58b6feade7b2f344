"""Two writers of one name never mix their files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from genesis_core.errors import RecordingError
from genesis_core.record.claim import claimed

HOLD = "import sys, pathlib\nfrom genesis_core.record.claim import claimed\n"
HOLD += "with claimed(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.readline()\n"


def holder(output: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(output)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    output = tmp_path / "robot.gsrec"
    process = holder(output)
    with pytest.raises(RecordingError, match="another process is writing robot"), claimed(output):
        pass
    with claimed(tmp_path / "other.gsrec"):
        pass
    process.communicate("\n")
    with claimed(output):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    output = tmp_path / "robot.gsrec"
    process = holder(output)
    process.kill()
    process.wait(10)
    with claimed(output):
        pass
    assert list(tmp_path.iterdir()) == []
