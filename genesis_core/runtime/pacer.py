"""How many steps to take now: real time times a factor, or as fast as it goes, in chunks that keep it responsive."""

from __future__ import annotations

CHUNK_SECONDS = 0.016  # wall time of one chunk of steps: a message waits no longer than this
MAX_LAG = 0.25  # [s] how far the simulation may fall behind before it gives up catching up


class Pacer:
    """Pure bookkeeping on clock values that are handed in, so that tests need no waiting."""

    def __init__(self, timestep: float) -> None:
        self.timestep = timestep
        self.factor: float | None = 1.0
        self._seconds_per_step = 0.0
        self._origin = 0.0  # wall time at which the simulated clock read _simulated
        self._done = 0.0  # simulated seconds since the origin

    def anchor(self, now: float) -> None:
        """The simulated clock and the wall clock agree from here on."""
        self._origin, self._done = now, 0.0

    def set_factor(self, factor: float | None, now: float) -> None:
        """None = as fast as it goes."""
        self.factor = factor
        self.anchor(now)

    def chunk(self) -> int:
        """The most steps that fit in one chunk, by the speed measured so far."""
        if self._seconds_per_step <= 0:
            return 1
        return max(1, min(1000, int(CHUNK_SECONDS / self._seconds_per_step)))

    def due(self, now: float) -> int:
        """Steps to take now; 0 = it is too early."""
        if self.factor is None:
            return self.chunk()
        lag = (now - self._origin) * self.factor - self._done
        if lag > MAX_LAG * max(1.0, self.factor):
            self.anchor(now)
            lag = self.timestep
        return min(self.chunk(), int(lag / self.timestep + 1e-9))

    def wait(self, now: float) -> float:
        """Wall seconds until the next step is due."""
        if self.factor is None:
            return 0.0
        if self.factor <= 0:
            return 1.0
        return max(0.0, self._origin + (self._done + self.timestep) / self.factor - now)

    def took(self, steps: int, seconds: float) -> None:
        """`steps` steps took `seconds` of wall time."""
        self._done += steps * self.timestep
        measured = seconds / max(1, steps)
        old = self._seconds_per_step
        self._seconds_per_step = measured if old <= 0 else 0.8 * old + 0.2 * measured
