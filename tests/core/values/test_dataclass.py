"""Our dataclasses behave like those of the standard library."""

import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from kthena_components.core.values.dataclass import dataclass, replace


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


BY: tuple[Any, Any] = dataclass, dataclasses.dataclass


def _wide(by: Any) -> Any:
    """Define a class without slots, whose fields are set in all ways."""

    @by(frozen=True)
    class Wide:
        first: int
        second: list[int] = field(default_factory=list)
        third: int = field(default=3, kw_only=True)
        made: list[int] = field(default_factory=lambda: [5], init=False)

    return Wide


def _derived(by: Any) -> Any:
    """Define a class with slots of its own and of another one, and with more after its start."""

    @by(frozen=True, slots=True)
    class Base:
        first: int

    @by(frozen=True, slots=True)
    class Derived(Base):
        second: int = 2
        last: int = field(init=False)
        third: int = field(default=4, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "last", self.first + self.second)

    return Derived


CALLS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1, 2, 3, 4), {}),
    ((), {"first": 1}), ((1,), {"first": 1}), ((1,), {"third": 4}), ((1,), {"last": 4}),
    ((), {"first": 1, "second": 7}), ((1,), {"made": [1]}), ((1,), {"more": 1}),
)  # fmt: skip


@pytest.mark.parametrize("define", [_wide, _derived])
def test_they_are_made_alike(define: Any) -> None:
    def told(made: Any, values: tuple[int, ...], named: dict[str, Any]) -> str:
        try:
            return repr(made(*values, **named))
        except TypeError as error:
            return str(error)

    ours, standard = map(define, BY)
    for values, named in CALLS:
        assert told(ours, values, named) == told(standard, values, named)
    assert ours(1) == dataclasses.replace(ours(2), first=1)

    def shared(made: Any) -> list[bool]:
        one, other = made(1), made(1)
        return [getattr(one, f.name) is getattr(other, f.name) for f in dataclasses.fields(made)]

    assert shared(ours) == shared(standard)


def test_a_frozen_one_does_not_change_and_another_is_not_hashed() -> None:
    for made in (Ours(a=1), _wide(dataclass)(1)):
        name = dataclasses.fields(made)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(made, name)
    with pytest.raises(TypeError):
        hash(Changing(1))
    assert Changing(1) == Changing(1)


def test_what_a_class_defines_itself_stays() -> None:
    assert (Own(1), hash(Own(1)), repr(Own(1))) == (Own(2), 7, "own")


@pytest.mark.parametrize("define", [_wide, _derived])
def test_a_copy_is_that_of_the_standard_library(define: Any) -> None:
    for made in (define(dataclass)(1), define(dataclasses.dataclass)(1), Changing(1)):
        name = dataclasses.fields(made)[0].name
        assert replace(made) == made
        assert replace(made) is not made
        assert repr(replace(made, **{name: 5})) == repr(dataclasses.replace(made, **{name: 5}))
        with pytest.raises(TypeError, match="unexpected keyword argument 'unheard'"):
            replace(made, unheard=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.a)


def test_a_copy_is_checked_as_a_new_one_is() -> None:
    assert replace(Checked(1), a=2) == Checked(2)
    with pytest.raises(ValueError, match="-1"):
        replace(Checked(1), a=-1)
