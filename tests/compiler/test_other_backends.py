"""Each backend that a remedy names takes the field: computed, and never written by hand."""

import re
from pathlib import Path
from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.compiler.refusals import OFFERED
from kthena_components.core.findings import SpecError
from kthena_components.systems import EMITTERS
from tests.support.specs import changed
from tests.systems.kaito import test_limits as kaito
from tests.systems.kserve import test_limits as kserve
from tests.systems.kserve import test_limits_engine as kserve_engine
from tests.systems.kserve import test_limits_llm as kserve_llm
from tests.systems.lws import test_limits as lws
from tests.systems.matrixinfer import test_limits as matrixinfer

NAMED = re.compile(r"or write backend: ([a-z, ]+?)(, and change what it refuses)?\Z")
SYSTEMS = Path(__file__).parents[2] / "kthena_components" / "systems"


def refused(args: dict[str, Any]) -> dict[str, str]:
    """Return the remedies of what a backend cannot express, by path."""
    try:
        compile_serving(args)
    except SpecError as error:
        return {f.path: str(f.remedy) for f in error.findings if f.rule == "backend-loss"}
    return {}


ROWS = {
    f"{module.__name__}-{name}": row
    for module in (kaito, kserve, kserve_engine, kserve_llm, lws, matrixinfer)
    for name, row in module.REFUSED.items()
}


def test_each_backend_that_a_remedy_names_takes_the_field() -> None:
    named = 0
    for title, (base, changes, *_) in ROWS.items():
        given = changed(base, changes)
        for path, remedy in refused(given).items():
            found = NAMED.search(remedy)
            for backend in re.findall(r"[a-z]+", found[1].replace(" or ", " ")) if found else ():
                named += 1
                without = {key: v for key, v in given.items() if key != "backend_options"}
                there = refused({**without, "backend": backend})
                assert path not in there, (title, path, backend, there)
                if found and not found[2]:
                    assert not there, (title, path, backend, there)
    assert named > len(ROWS)


def test_every_backend_is_offered_but_the_older_form_of_kthena() -> None:
    assert {*OFFERED, "matrixinfer"} == {*EMITTERS}


@pytest.mark.parametrize("backend", EMITTERS)
def test_no_limit_names_another_backend(backend: str) -> None:
    texts = [path.read_text() for path in (SYSTEMS / backend).glob("limits*.py")]
    assert not any(re.search(r"or (write )?backend: [a-z]", text) for text in texts)
