"""The rule image-pinned."""

from collections.abc import Iterator

from kthena_components.core.facts.container import (
    ContainerFacts,
)
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import write
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.images import read_image, shown_image
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import Unknown


@each_engine
def image_pinned(engine: EngineFacts) -> Iterator[Finding]:
    """An engine's image is pinned, and its entry and workers run the same one.

    With a moving tag, a restarted pod may run another version: advisory. Two versions in one engine
    never connect: mandatory. Registries are compared, except that Docker Hub's host may be left
    out.

    Pass: vllm/vllm-openai:v0.33.0 in both templates, or the same digest in both.
    Fail: no tag or :latest (advisory); v0.33.0 in the entry and v0.32.0 in the worker (mandatory).
    Level: advisory; mandatory for different images.
    Source: Kubernetes documentation, Images; vLLM docs/serving/parallelism_scaling.md (identical
    environments on all nodes).
    """
    command, entry = engine.entry.command, engine.entry.own
    worker = engine.worker.own if engine.worker and engine.pods != 1 else None
    if entry is None or command is None or (command.engine is None and command.ray_role is None):
        return
    images = [own.image for own in (entry, worker) if own is not None]
    yield from _unpinned(engine, entry)
    require_known(entry.image_path, *images)
    if worker is not None:
        yield from _unlike(engine, entry, worker)


def _unpinned(engine: EngineFacts, container: ContainerFacts) -> Iterator[Finding]:
    name = container.image
    if name is None or isinstance(name, Unknown) or read_image(name).pinned:
        return
    tag = read_image(name).tag
    stated = f"the tag {tag}" if tag else "no tag, which means latest"
    yield Finding(
        path=container.image_path,
        seen=f"{title(engine)} runs '{shown_image(name)}', which has {stated}, and a restarted pod "
        "may run another version",
        remedy="write the tag of a release, or a digest",
        level=Level.ADVISORY,
    )


def _unlike(
    engine: EngineFacts, entry: ContainerFacts, worker: ContainerFacts
) -> Iterator[Finding]:
    if not isinstance(entry.image, str) or not isinstance(worker.image, str):
        return
    if read_image(entry.image).same_build(read_image(worker.image)):
        return
    yield Finding(
        path=worker.image_path,
        seen=f"{title(engine)} runs '{shown_image(worker.image)}' in its workers and "
        f"'{shown_image(entry.image)}' in its entry, and two versions never form one engine",
        remedy=_same_image(entry.image, worker.image),
    )


def _same_image(entry: str, worker: str) -> str:
    """Write the image of the entry in both, as a change only if both are of one product."""
    said = f"write '{shown_image(entry)}' in both"
    return (
        write(entry, said)
        if read_image(entry).repository == read_image(worker).repository
        else said
    )
