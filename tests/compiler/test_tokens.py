"""An Output stands as a token in contents of manifests, and in no name, key or option of one."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from kthena_components.systems import EMITTERS
from tests.support.strategies import law, servings

TOKEN = f"{OUTPUT_OPEN}123{OUTPUT_CLOSE}"
Path = tuple[Any, ...]
pytestmark = pytest.mark.property


def texts(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, str):
        yield path
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        yield from texts(item, (*path, key))


def put(args: Any, path: Path) -> Any:
    made = holder = copy.deepcopy(args)
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = TOKEN
    return made


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from map(str, value)
    items = value.values() if isinstance(value, Mapping) else ()
    for item in value if isinstance(value, list | tuple) else items:
        yield from keys(item)


@law
@pytest.mark.parametrize("backend", EMITTERS)
@given(st.data())
def test_no_name_and_no_key_is_made_of_a_token(backend: str, data: st.DataObject) -> None:
    args = data.draw(servings(backend))
    path = data.draw(st.sampled_from(list(texts(args))))
    try:
        made = compile_serving(put(args, path)).manifests
    except SpecError:
        return
    for one in made:
        fields = asdict(one)
        body = fields.pop("body")
        assert TOKEN not in one.name, path
        assert TOKEN not in str(fields), path
        assert not [key for key in keys(body) if TOKEN in key], path
