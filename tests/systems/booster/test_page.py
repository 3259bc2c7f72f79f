"""The page of the backend shows what is really written and said."""

import re
from pathlib import Path

import yaml

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.specs import Args, changed

PAGE = (Path(__file__).parents[3] / "docs" / "backends" / "booster.md").read_text()
STATED, WRITTEN = (
    yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
)
(REFUSALS,) = re.findall(r"```\n(.*?)```\n\n## An example", PAGE, re.DOTALL)


def test_the_example_becomes_what_is_shown() -> None:
    assert compile_serving(STATED).manifests[0].body == WRITTEN


def test_the_refusals_are_those_that_are_shown() -> None:
    wrong: Args = changed(
        STATED, {"queue": "a", "roles[0].resources.shm": "16Gi", "roles[0].engine.port": 8080}
    )
    said = ""
    try:
        compile_serving(wrong)
    except SpecError as error:
        said = str(error)
    assert said.strip() == REFUSALS.strip()
