"""The errors that users meet. Each says what is wrong (with the value), where, and what to do about it."""

from __future__ import annotations

from pathlib import Path


class GenesisError(Exception):
    """Base of every error that Genesis Studio raises on purpose.

    `what` names the fault with its value, `where` the place (file:line, element, environment, device) and `hint`
    what to do about it.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(self.__str__())

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[GenesisError], state: dict[str, object]) -> GenesisError:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    Exception.__init__(error, str(error))
    return error


class SceneError(GenesisError):
    """A scene, robot or mesh file that cannot be used; names the file, the line and the element where known."""

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        element: str = "",
        hint: str = "",
    ) -> None:
        self.file = str(file) if file is not None else None
        self.line = line
        self.element = element
        place = self.file or ""
        if place and line is not None:
            place += f":{line}"
        if element:
            place += f" <{element}>" if place else f"<{element}>"
        super().__init__(what, where=place, hint=hint)


class UnsupportedFeatureError(GenesisError):
    """A feature of the file or of the API that is not simulated."""


class DeviceError(GenesisError):
    """A backend or device that does not exist, is busy, or cannot do what was asked."""


class OptionError(GenesisError, ValueError):
    """A parameter with a value that makes no sense."""


class StateError(GenesisError):
    """A call in the wrong order (before `init`, after `close`, twice)."""


class WorkerError(GenesisError):
    """A worker process failed; carries the tail of its log."""


class RenderError(GenesisError):
    """No OpenGL context could be made, or a picture could not be drawn."""


class RecordingError(GenesisError):
    """A recording or video that cannot be written or read."""
