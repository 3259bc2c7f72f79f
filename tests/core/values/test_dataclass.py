"""Our dataclasses behave like those of the standard library."""

import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from kthena_components.core.values.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    a: int
    b: str = field(default="b", repr=False)
    c: list[int] = field(default_factory=list, hash=False)
    d: int = field(default=0, compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    a: int
    b: str = field(default="b", repr=False)
    c: list[int] = field(default_factory=list, hash=False)
    d: int = field(default=0, compare=False)


@dataclass(slots=True)
class Changing:
    a: int


@dataclass(frozen=True, slots=True)
class Own:
    a: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


ROWS: tuple[dict[str, Any], ...] = (
    {"a": 1}, {"a": 1, "c": [2]}, {"a": 1, "b": "x"}, {"a": 1, "d": 5}, {"a": 2},
    {"a": float("nan")},
)  # fmt: skip


def test_they_compare_and_show_themselves_alike() -> None:
    pairs = [(Ours(**row), Standard(**row)) for row in ROWS]
    for ours, standard in pairs:
        assert repr(ours) == repr(standard).replace("Standard", "Ours")
        assert [ours == other for other, _ in pairs] == [standard == other for _, other in pairs]
        for other, same in pairs:
            assert ours != other or (hash(ours) == hash(other)) == (hash(standard) == hash(same))
    assert all(ours != other for ours, other in pairs)  # type: ignore[comparison-overlap]
    assert pickle.loads(pickle.dumps(pairs[1][0])) == pairs[1][0]  # noqa: S301 - our own bytes
    assert dataclasses.replace(pairs[0][0], a=2) == pairs[4][0]


def test_a_frozen_one_does_not_change_and_another_is_not_hashed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(Ours(a=1), "a", 2)  # noqa: B010 - mypy sees an assignment
    with pytest.raises(TypeError):
        hash(Changing(1))
    assert Changing(1) == Changing(1)


def test_what_a_class_defines_itself_stays() -> None:
    assert (Own(1), hash(Own(1)), repr(Own(1))) == (Own(2), 7, "own")
