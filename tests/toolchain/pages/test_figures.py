"""The figures of the documentation are current, and agree with what they are drawn from."""

import re
from itertools import chain

import pytest

from kthena_components.cli.main import COMMANDS
from kthena_components.systems.native.emit import emit
from tests.support.for_each import for_each
from toolchain.pages.figures import check_steps, command_inputs, hierarchy
from toolchain.pages.figures.__main__ import DOCS, FIGURES
from toolchain.pages.figures.sheet import Box, begin, draw_box
from toolchain.site.commands import parser_of

SHOWN = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))


@for_each("name", FIGURES)
def test_a_figure_is_current_and_on_a_page(name: str) -> None:
    """`make pictures` draws it."""
    assert (DOCS / name).read_text(encoding="utf-8") == FIGURES[name]()
    assert f"]({name})" in SHOWN


def test_the_hierarchy_has_the_pods_that_are_emitted() -> None:
    plan = hierarchy.read_plan()
    wanted = {
        f"pod {one.name}-{number + one.body['spec'].get('ordinals', {}).get('start', 0)}"
        for one in emit(plan)
        if one.kind == "StatefulSet"
        for number in range(one.body["spec"]["replicas"])
    }
    pods = [line for line in lines_of(hierarchy.serving_box(plan)) if line.startswith("pod ")]
    assert set(pods) == wanted
    assert len(pods) == plan.pods > 1


def test_the_page_says_the_numbers_of_the_hierarchy() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    assert hierarchy.in_words(hierarchy.read_plan()) in " ".join(page.split())


def lines_of(box: Box) -> list[str]:
    """Return all lines of a box and of those in it."""
    return [*box.lines, *chain.from_iterable(map(lines_of, box.inside))]


def test_every_command_states_what_it_reads() -> None:
    assert list(command_inputs.INPUTS) == list(COMMANDS)


@for_each("command", COMMANDS)
def test_what_a_command_reads_agrees_with_its_options(command: str) -> None:
    """Only a command that reads a cluster takes a kubeconfig."""
    inputs = command_inputs.INPUTS[command]
    module, told = COMMANDS[command]
    known = parser_of(command, module, told).format_help()
    assert inputs.keys() <= set(command_inputs.COLUMNS)
    assert ("cluster" in inputs) == ("--kubeconfig" in known)
    assert ("stack file" in inputs) == ("--stack" in known or bool({command} & {"fit", "review"}))
    for option in re.findall(r"--[a-z-]+|[A-Z]{2,}", " ".join(inputs.values())):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", known), option


@for_each("command", COMMANDS)
def test_the_threat_model_says_what_each_command_reads(command: str) -> None:
    rows = [
        line.split("|")[1]
        for line in (DOCS / "security.md").read_text().splitlines()
        if "|" in line
    ]
    assert any(re.search(rf"`{command}\b", row) for row in rows)


def test_a_step_without_its_function_is_an_error() -> None:
    with pytest.raises(AttributeError):
        check_steps.step("Find files", "reading.folders:no_such_function")


def test_a_text_is_never_wider_than_its_box() -> None:
    with pytest.raises(ValueError, match="px and has"):
        draw_box(begin("title", 100), Box(["x" * 60]), 0, 0, 400)
