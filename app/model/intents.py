"""What the user wants, told by views and heard by control. Commands without arguments are in commands.py."""

from __future__ import annotations

from psygnal import Signal


class Intents:
    """One signal per wish."""

    open_path = Signal(str)  # a file
    load = Signal()  # the scene of `AppState.wanted` with its settings
    stop = Signal()  # end the workers
    cancel = Signal()  # give up the scene that is loading
    show = Signal(str)  # a selection such as "first:16"
    toggle_env = Signal(int)
    set_speed = Signal(object)  # float, None = as fast as it goes
    set_ctrl = Signal(object, object)  # list of values, environment or None = all
    pull = Signal(int, int, tuple, tuple)  # env, body, point (body frame), target (environment's world frame)
    let_go = Signal(int, int)  # env, body
    restart_worker = Signal(int)
