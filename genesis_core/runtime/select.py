"""Selections of environments as text: "all", "0,5", "3-8", "first:4", "last:4", "random:4", "none"."""

from __future__ import annotations

import re

import numpy as np

from genesis_core.errors import OptionError

_KINDS = ("first", "last", "random")
_HINT = 'write "all", "none", "0,5", "0-7", "first:4", "last:4" or "random:4"'


def select_envs(text: str, n_envs: int, seed: int = 0) -> list[int]:
    """Global environment numbers that `text` names, in ascending order except where numbers are listed.

    first:N, last:N and random:N give at most all there are; random depends on the seed and n_envs alone. A number that
    does not exist or a text that is no selection is an OptionError.
    """
    plain = text.replace(" ", "")
    if plain == "all":
        return list(range(n_envs))
    if plain == "none":
        return []
    kind, colon, count = plain.partition(":")
    if colon and kind in _KINDS and count.isdecimal():
        n = min(int(count), n_envs)
        if kind == "first":
            return list(range(n))
        if kind == "last":
            return list(range(n_envs - n, n_envs))
        return sorted(np.random.default_rng(seed).choice(n_envs, n, replace=False).tolist())
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", plain):
        raise OptionError(f"'{text}' is no selection of environments", hint=_HINT)
    out: dict[int, None] = {}
    for part in plain.split(","):
        low, dash, high = part.partition("-")
        first, last = int(low), int(high) if dash else int(low)
        if last < first:
            raise OptionError(f"'{part}' counts down", where=f"selection '{text}'", hint=f"write {last}-{first}")
        if last >= n_envs:
            raise OptionError(
                f"environment {last} does not exist",
                where=f"selection '{text}'",
                hint=f"numbers go from 0 to {n_envs - 1}",
            )
        out.update(dict.fromkeys(range(first, last + 1)))
    return list(out)
