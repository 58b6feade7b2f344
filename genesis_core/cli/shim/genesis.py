"""Stands in for Genesis in processes that a script starts under `genesis-studio run`."""

import importlib
import sys

sys.modules["genesis"] = importlib.import_module("genesis_core")
