"""The status bar: state, real-time factor, speed of every worker, pictures per second, what draws."""

from __future__ import annotations

from PySide6.QtWidgets import QStatusBar

from app.model.state import AppState, count_text
from app.ui.theme import set_role
from app.ui.widgets.basics import elided, label

TITLES = {"empty": ("No scene", ""), "loading": ("Loading", "accent"), "compiling": ("Compiling", "accent"),
          "paused": ("Paused", "warn"), "running": ("Running", "good"), "failed": ("Stopped", "bad")}  # fmt: skip


class StatusBar(QStatusBar):
    """Labels only; nothing here can be clicked."""

    def __init__(self, state: AppState) -> None:
        super().__init__()
        self.state = state
        self.setSizeGripEnabled(False)
        self.phase = label("", "chip")
        self.factor = label()
        self.factor.setToolTip("Simulated seconds per second")
        self.rate = label()
        self.rate.setToolTip("Environment-steps per second of each worker")
        self.diverged = label()
        self.frames = label()
        self.frames.setToolTip("Pictures drawn per second")
        self.renderer = label()
        for widget in (self.phase, self.factor, self.rate, self.diverged):
            self.addWidget(widget)
        for widget in (self.frames, self.renderer):
            self.addPermanentWidget(widget)
        state.phase_changed.connect(self._on_phase)
        state.loading_changed.connect(self._on_phase)
        state.workers_changed.connect(self._on_workers)
        state.rendered.connect(self._on_rendered)
        state.renderer_found.connect(self._on_renderer)
        self._on_phase()

    def _on_phase(self, _phase: str = "") -> None:
        phase = self.state.phase
        if self.state.loading is not None and phase == "empty":
            phase = "loading"
        title, tone = TITLES[phase]
        self.phase.setText(title)
        set_role(self.phase, tone=tone)

    def _on_workers(self) -> None:
        workers = self.state.workers
        running = [w for w in workers if w.state == "running"]
        if not running:
            self.factor.setText("")
            self.rate.setText("")
        else:
            factor = min(w.realtime_factor for w in running)
            self.factor.setText(f"{factor:.2f}× real time")
            behind = self.state.speed is not None and factor < 0.9 * self.state.speed
            set_role(self.factor, tone="warn" if behind else "")
            parts = [f"{w.device} {count_text(w.env_steps_per_second)}" for w in workers[:4]]
            more = f" +{len(workers) - 4}" if len(workers) > 4 else ""
            self.rate.setText(f"{', '.join(parts)}{more} env-steps/s")
            self.rate.setToolTip("\n".join(f"{w.device}: {w.env_steps_per_second:,.0f} env-steps/s" for w in workers))
        count = sum(w.nan_count for w in workers)
        self.diverged.setText(f"{count} diverged" if count else "")
        set_role(self.diverged, tone="bad")

    def _on_rendered(self, rate: float) -> None:
        self.frames.setText(f"{rate:.0f} fps" if self.state.bundle is not None and rate > 0 else "")

    def _on_renderer(self, name: str, software: bool) -> None:
        self.renderer.setText(f"software OpenGL ({elided(name.split('(')[0].strip(), 24)})" if software else name)
        self.renderer.setToolTip(f"{name}: pictures are drawn by the CPU, slower than on a GPU" if software else name)
        set_role(self.renderer, tone="warn" if software else "")
