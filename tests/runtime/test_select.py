"""Selections of environments as text."""

from __future__ import annotations

import pytest

from genesis_core.errors import OptionError
from genesis_core.runtime.select import select_envs


@pytest.mark.parametrize(
    ("text", "envs"),
    [
        ("0,5", [0, 5]),
        ("5,0", [5, 0]),
        ("1-3, 7", [1, 2, 3, 7]),
        ("2,2,1-2", [2, 1]),
        ("first:3", [0, 1, 2]),
        ("first:99", list(range(8))),
        ("last:2", [6, 7]),
        ("all", list(range(8))),
        ("none", []),
        ("first:0", []),
    ],
)
def test_a_selection_names_environments(text: str, envs: list[int]) -> None:
    assert select_envs(text, 8) == envs


def test_random_environments_depend_on_the_seed_alone() -> None:
    one = select_envs("random:4", 1000, seed=3)
    assert one == select_envs("random:4", 1000, seed=3) == sorted(set(one))
    assert len(one) == 4 and one != select_envs("random:4", 1000, seed=4)
    assert select_envs("random:9", 5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", ["8", "0-8", "3-1", "-1", "", "first", "first:x", "1,,2", "0;1", "every"])
def test_a_wrong_selection_is_refused_with_advice(text: str) -> None:
    with pytest.raises(OptionError) as error:
        select_envs(text, 8)
    assert error.value.hint
