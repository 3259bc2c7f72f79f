"""The Python programs of the how-to pages run, and make the objects that the pages show."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pulumi
import pytest
import yaml
from markdown_it import MarkdownIt
from pulumi.runtime import Mocks

from kthena_components.testing import ProgramResult, run_program
from tests.support.for_each import for_each
from tests.support.pages import ROOT

FOLDER = "docs/how-to"
ELSEWHERE = {
    "new-project.md": "tests/pages/test_commands.py runs its commands",
    "transforms.md": "mocks run no transforms: a test below calls the function",
    "unit-tests.md": "tests/test_testing.py runs its tests",
}


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a page, and what the page shows below it."""

    text: str
    shown: tuple[tuple[str, str], ...]
    """Language and text of the blocks before the next program."""


class _Platform(Mocks):
    """Answers as the stack that a page refers to."""

    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        outputs = {"outputs": {"namespace": "research"}} if "StackReference" in args.typ else {}
        return args.name, {**args.inputs, **outputs}

    def call(self, args: Any) -> Any:
        return args.args


def programs(page: str) -> Iterator[Program]:
    """List the programs of a page."""
    fences = [one for one in MarkdownIt().parse((ROOT / page).read_text()) if one.type == "fence"]
    starts = [at for at, one in enumerate(fences) if one.info == "python"]
    for at, end in zip(starts, [*starts[1:], len(fences)], strict=False):
        shown = tuple((one.info, one.content) for one in fences[at + 1 : end])
        yield Program(fences[at].content, shown)


def missing(part: Any, whole: Any, path: str = "") -> Iterator[str]:
    """Give the paths of what a page shows and an object does not have."""
    if isinstance(part, dict) and isinstance(whole, dict):
        for key, value in part.items():
            yield from missing(value, whole.get(key), f"{path}.{key}")
    elif isinstance(part, list) and isinstance(whole, list):
        for number, one in enumerate(part):
            if all(any(missing(one, other)) for other in whole):
                yield f"{path}[{number}]"
    elif part != whole:
        yield path


PAGES = sorted(
    f"{FOLDER}/{path.name}"
    for path in (ROOT / FOLDER).glob("*.md")
    if path.name not in ELSEWHERE and [*programs(f"{FOLDER}/{path.name}")]
)


@pytest.fixture(autouse=True)
def _eks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand for pulumi-eks, which is not among the locked packages."""

    class Cluster(pulumi.ComponentResource):
        def __init__(self, name: str, **args: object) -> None:
            super().__init__("eks:index:Cluster", name, args)
            self.kubeconfig_json = pulumi.Output.secret("{}")

    eks: Any = ModuleType("pulumi_eks")
    eks.Cluster = Cluster
    monkeypatch.setitem(sys.modules, "pulumi_eks", eks)


@for_each("page", PAGES, ids=PAGES)
def test_the_programs_of_a_page_make_what_it_shows(page: str) -> None:
    for program in programs(page):
        made = _run(program.text)
        assert made.manifests
        for language, text in program.shown:
            if language == "json":
                assert made.outputs == json.loads(text)
            elif language == "yaml" and "kind:" in text:
                shown = yaml.safe_load(text)
                found = made.manifest(shown["kind"], shown["metadata"]["name"])
                assert [*missing(shown, found)] == []


def test_the_transform_of_its_page_annotates_the_service() -> None:
    (program,) = programs(f"{FOLDER}/transforms.md")
    given = "pulumi.ResourceOptions(transforms=[owned])"
    assert given in program.text
    names: dict[str, Any] = {}
    service = _run(program.text.replace(given, "None"), names).manifest("Service", "chat")
    kind, options = "kubernetes:core/v1:Service", pulumi.ResourceOptions()
    args = pulumi.ResourceTransformArgs(True, kind, "chat", service, options)
    changed = names["owned"](args).props
    assert changed["metadata"]["annotations"]["acme.example/internal"] == "true"
    assert changed["spec"] == service["spec"]
    args = pulumi.ResourceTransformArgs(True, kind, "chat-0-serve-0", service, options)
    assert names["owned"](args) is None


def _run(text: str, names: dict[str, Any] | None = None) -> ProgramResult:
    names = {} if names is None else names
    made = run_program(lambda: exec(text, names), mocks=_Platform())  # noqa: S102 - of our own page
    assert made.findings == ()
    return made


def test_what_a_page_shows_must_be_there() -> None:
    whole = {"a": [{"b": 1, "c": 2}], "d": "e"}
    assert [*missing({"a": [{"c": 2}], "d": "e"}, whole)] == []
    assert [*missing({"a": [{"c": 3}], "f": 1}, whole)] == [".a[0]", ".f"]


def test_the_pages_are_found() -> None:
    assert len(PAGES) >= 7
    assert all((ROOT / FOLDER / name).exists() for name in ELSEWHERE)
    assert Path(PAGES[0]).suffix == ".md"
