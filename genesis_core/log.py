"""One logger per module, all below `genesis_core`; nothing is configured on import."""

from __future__ import annotations

import logging

ROOT = "genesis_core"


def get_logger(name: str) -> logging.Logger:
    """The logger of a module: `log = get_logger(__name__)`."""
    return logging.getLogger(name if name.startswith((ROOT, "app")) else f"{ROOT}.{name}")
