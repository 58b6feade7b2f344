"""What the window remembers: a TOML file with a version, read tolerantly, written at once as a whole."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from genesis_core.log import get_logger

log = get_logger(__name__)

VERSION = 1
MAX_RECENT = 10


class Settings(BaseModel):
    """Everything that outlives the window. Unknown keys of other versions are dropped, bad values become defaults."""

    model_config = ConfigDict(validate_assignment=True, extra="ignore")

    version: int = VERSION
    theme: Literal["dark", "light"] = "dark"
    recent: list[str] = Field([], max_length=MAX_RECENT)
    last_folder: str = ""
    backend: Literal["auto", "cpu", "cuda", "metal"] = "auto"
    cpu_workers: int = Field(1, ge=1, le=1024)
    precision: Literal["32", "64"] = "32"
    compact: bool = True
    geometry: str = ""  # Qt's own bytes, base64
    docks: str = ""

    def remember(self, path: str) -> None:
        """Puts a file in front of the recent ones."""
        self.recent = [path, *(p for p in self.recent if p != path)][:MAX_RECENT]


def settings_file() -> Path:
    """Where the settings lie; GENESIS_CONFIG_DIR moves them."""
    folder = os.environ.get("GENESIS_CONFIG_DIR") or platformdirs.user_config_path("genesis-studio", appauthor=False)
    return Path(folder) / "settings.toml"


def load_settings(path: Path | None = None) -> tuple[Settings, list[str]]:
    """The settings and what was wrong with the file; a broken file is kept beside the new one as `.bak`."""
    path = path or settings_file()
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Settings(), []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".toml.bak"))
        return Settings(), [
            f"{path}: settings cannot be read ({error}); defaults are used, the old file is kept as .bak"
        ]
    return _validated(data, path)


def _validated(data: dict[str, Any], path: Path) -> tuple[Settings, list[str]]:
    notes: list[str] = []
    while True:
        try:
            found = Settings(**data)
            found.version = VERSION
            return found, notes
        except ValidationError as error:
            for problem in error.errors():
                key = str(problem["loc"][0])
                if key in data:
                    notes.append(f"{path}: {key} = {data[key]!r} is not usable ({problem['msg']}); its default is used")
                    del data[key]


def save_settings(settings: Settings, path: Path | None = None) -> bool:
    """Writes the file; a full disk or a read-only folder is logged, never fatal."""
    path = path or settings_file()
    lines = ["# Genesis Studio: what the window remembers. Delete the file to begin anew.\n"]
    lines += [f"{key} = {_toml(value)}\n" for key, value in settings.model_dump().items()]
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text("".join(lines), "utf-8")
        partial.replace(path)
    except OSError as error:
        log.warning("%s: settings are not saved: %s", path, error.strerror)
        with contextlib.suppress(OSError):
            partial.unlink()
        return False
    return True


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, except that TOML wants DEL escaped and no surrogate pairs.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(_toml(v) for v in value)}]"
    return str(value)
