"""Draws the way of one object through `check`, with the functions that take it."""

from collections.abc import Mapping
from importlib import import_module

from toolchain.pages.figures.sheet import (
    GAP,
    LINE,
    MARGIN,
    WIDTH,
    Box,
    begin,
    draw_arrow,
    draw_box,
    end,
    height_of,
)

_ARROW = 22


def step(title: str, *names: str, inside: tuple[Box, ...] = (), colour: str = "") -> Box:
    """Return a box for one step.

    Args:
        title: What happens.
        names: The functions and classes that do it, as `reading.folders:find_files`.
        inside: The steps in it.
        colour: Of the box.

    Raises:
        AttributeError: A module has no such name.
    """
    return Box([title, *map(_written, names)], inside, colour)


def _written(name: str) -> str:
    module, _, path = name.partition(":")
    found = import_module(f"kthena_components.{module}")
    owner: object = found
    for part in path.split("."):
        owner = _part(owner, part)
    file = module.replace(".", "/")
    is_package = hasattr(found, "__path__")
    return f"{path}: {file}/__init__.py" if is_package else f"{path}: {file}.py"


def _part(owner: object, name: str) -> object:
    """Return an attribute, or the type of a field without a default."""
    fields: Mapping[str, object] = getattr(owner, "__annotations__", {})
    return fields[name] if name in fields else getattr(owner, name)


def steps() -> list[Box]:
    """Return all steps, in their order."""
    return [
        step("Find files", "reading.folders:find_files", "reading.layout:arrange"),
        step("Render charts and kustomizations", "rendering.render:render"),
        step("Collect what objects take from others", "core.facts.context:Context"),
        step("Read the object", "reading.documents:read_documents", "cli.sources:objects_of"),
        step("Find its kind; an unknown one is not checked", "systems:find_kind",
             "checker.unread_kinds_and_parts:kind_read"),
        step(
            "Check the object alone", "checker.manifest:check_whole", colour="c0",
            inside=(
                step("Parse it once", "systems.system:Kind.view"),
                step("Read its facts, and run the rules over facts", "systems.system:Kind.facts",
                     "core.rules.registry:CHECKS", "core.rules.production:PRODUCTION"),
                step("Run the rules of its kind", "systems.system:Kind.rules"),
                step("Compare with schemas of pods and CRDs", "checker.pod_schema:check_templates",
                     "checker.crd_schema:crd_schema"),
                step("Apply its waivers", "checker.waivers:waive"),
            ),
        ),
        step(
            "Check all objects together", "cli.check.kept_objects:AllObjects", colour="c2",
            inside=(
                step("Keep what they are compared by", "cli.check.kept_objects:KeptObjects"),
                step("Check engines of several objects",
                     "checker.check_cluster_objects:check_engines"),
                step("Run the rules of systems over all objects",
                     "checker.cluster_rules:cluster_rules"),
            ),
        ),
        step("Set the level of each finding", "checker.levels:Levels.apply"),
        step("Find file and line, and write the findings", "cli.check.results:Result",
             "cli.check.reports:FORMATS"),
    ]  # fmt: skip


def draw() -> str:
    """Return the figure."""
    boxes, top = steps(), MARGIN + LINE + GAP
    height = sum(map(height_of, boxes)) + _ARROW * (len(boxes) - 1)
    root = begin("One object's way through check", top + height + MARGIN)
    for number, box in enumerate(boxes):
        if number:
            draw_arrow(root, WIDTH // 2, top - _ARROW + 2, top - 2)
        top = draw_box(root, box, MARGIN, top, WIDTH - 2 * MARGIN) + _ARROW
    return end(root)
