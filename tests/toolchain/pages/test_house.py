"""The picture of the packages in docs/architecture.md."""

from collections.abc import Iterator
from functools import cache

import grimp
import pytest

from toolchain.pages import house


@cache
def imports() -> grimp.ImportGraph:
    """Read the imports once."""
    return house.read_imports()


def test_the_page_has_the_picture_of_the_imports() -> None:
    """`make house` writes it."""
    page = house.PAGE.read_text()
    assert house.written(page, house.house(imports())) == page


@pytest.mark.parametrize("parent", [house.PACKAGE, house.CORE])
def test_the_arrows_reach_exactly_what_is_imported(parent: str) -> None:
    """grimp finds the chains of imports between packages itself."""
    found = house.imports_between(imports(), parent)
    shown = house.without_implied(found)
    for name in found:
        assert set(reached(name, shown)) == set(reached(name, found)), name
        for other in found.keys() - {name}:
            direct = imports().direct_import_exists(
                importer=f"{parent}.{name}", imported=f"{parent}.{other}", as_packages=True
            )
            assert (other in found[name]) == direct, (name, other)


def test_an_implied_import_has_no_arrow() -> None:
    found = {name: frozenset(others) for name, others in {"a": "bcd", "b": "c", "c": ""}.items()}
    found["d"] = frozenset()
    assert house.without_implied(found) == {
        "a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()
    }  # fmt: skip


def test_no_name_is_inside_and_outside_of_core() -> None:
    """Mermaid would draw them as one."""
    outside, inside = (house.imports_between(imports(), p) for p in (house.PACKAGE, house.CORE))
    assert not outside.keys() & inside.keys()


@pytest.mark.parametrize("page", ["", house.BEGIN, house.END, house.END + house.BEGIN])
def test_a_page_without_both_marks_is_not_written(page: str) -> None:
    with pytest.raises(ValueError, match="lacks the line <!--"):
        house.written(page, "picture")


def reached(name: str, imports: house.Imports) -> Iterator[str]:
    """Yield each package that arrows lead to."""
    for other in imports[name]:
        yield other
        yield from reached(other, imports)
