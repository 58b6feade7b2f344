"""Fixtures of the API tests: a session in 64 bits that ends after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import genesis_core as gs


@pytest.fixture
def session64() -> Iterator[None]:
    gs.destroy()
    gs.init(backend=gs.cpu, precision="64", seed=0, logging_level="warning")
    yield
    gs.destroy()


@pytest.fixture
def session32() -> Iterator[None]:
    gs.destroy()
    gs.init(backend=gs.cpu, precision="32", seed=0, logging_level="warning")
    yield
    gs.destroy()
