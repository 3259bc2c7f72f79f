"""Finds engines of a preview whose memory nobody checked, because nothing names their GPU.

Policies say nothing of it: they would, in each preview, of objects that are right. A review says it
once for each stack.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from kthena_components.checker.levels import SettingError
from kthena_components.checker.manifest import read_manifest
from kthena_components.cli.levels import read_settings
from kthena_components.cli.policy_pack import FOLDER, LEVELS
from kthena_components.cli.review.branch import ReviewOptions
from kthena_components.cli.review.preview import Preview, Said, Weight
from kthena_components.cli.review.serving_sizes import identity
from kthena_components.cli.review.settings_versions import layout_of, stack_after
from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.findings import count_of
from kthena_components.core.hardware import NO_CHOICE, GpuChoice, parse_choice
from kthena_components.core.rules.memory import memory_unchecked
from kthena_components.core.values.read import mapping
from kthena_components.reading.project import ProjectError

RULE = "memory-weights-fit"
_WAYS = (
    'name it in the policies\' file of levels ("gpu": "h200" in the entry serving-rules), by '
    "resources.gpu of the role, by a node selector of the pods, or, for the stack program, in the "
    "stack file (kthena-components:gpu: h200)"
)
_PERHAPS = ". If such a file does, pass it with --level, so that the review knows it, too"


def without_gpu(preview: Preview, level: str | None, by: ReviewOptions | None) -> Iterator[Said]:
    """Say once of a stack whose memory was not checked.

    Args:
        preview: The preview of the stack.
        level: The levels that the user names, which may name a GPU.
        by: The options of a review with a base, which has the files; None without one.
    """
    gpus = _named(preview.stack, level, by)
    found = {
        _owner(body): None
        for step in preview.steps.values()
        if step.new and step.type.startswith("kubernetes:")
        for body in [{**step.new, **identity(step.type)}]
        if _is_unchecked(body, gpus)
    }
    if found:
        first, others = next(iter(found)), len(found) - 1
        more = f" and {count_of(others, 'other')}" if others else ""
        text = (
            f"memory of {first}{more} was not checked, because nothing names the GPU: {_WAYS}"
            f"{_PERHAPS if by is None and level is None else ''}. [{RULE}]"
        )
        yield Said(weight=Weight.UNKNOWN, rule=RULE, text=text)


def _is_unchecked(body: dict[str, object], gpus: GpuChoice) -> bool:
    facts = read_manifest(body, context=Context(gpus=gpus))
    return facts is not None and any(memory_unchecked(replace(facts, gpu_option=RULE)))


def _owner(body: dict[str, object]) -> str:
    """Return the serving of an object, or the object."""
    metadata = mapping(body.get("metadata"))
    serving = mapping(metadata.get("labels")).get(naming.NAME)
    name = f"{metadata.get('namespace') or 'default'}/{serving or metadata.get('name')}"
    return f"serving {name}" if serving else f"{body.get('kind')} {name}"


def _named(stack: str, level: str | None, by: ReviewOptions | None) -> GpuChoice:
    """Return the GPUs that files of levels or the stack file name."""
    files = [level] if level else []
    if by is not None:
        own = by.judge / FOLDER / LEVELS / f"{stack}.json"
        files += [str(own)] if own.is_file() else []
    for file in files:
        with suppress(SettingError):  # the preview says what is wrong with it
            if gpus := read_settings(file).gpus:
                return gpus
    return NO_CHOICE if by is None else _in_stack(stack, by)


def _in_stack(stack: str, by: ReviewOptions) -> GpuChoice:
    with suppress(ProjectError):
        project = by.sides.project_in(by.sides.after)
        stated = stack_after(by.sides, layout_of(project).file_of(stack), project).own.get("gpu")
        choice = parse_choice([stated] if isinstance(stated, str) else [])
        return choice if isinstance(choice, GpuChoice) else NO_CHOICE
    return NO_CHOICE
