"""Rules over two states of one object: before and after an update.

Only a preview knows both, so only the review of a pull request runs them. Those of a kind do not
apply to an object that is replaced.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.findings import Finding, advise, check_by, part_of_rule
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.rules.support.admission import Change
from kthena_components.core.values.read import group_kind, require_known
from kthena_components.systems import find_kind


def gpu_named_larger(change: Change) -> Iterator[Finding]:
    """An update names no GPU with more memory than before, unless the pods run on such GPUs.

    The rules about memory compare with the GPU that the pods name: by their node selector, by the
    annotation kthena-components/gpu, or by resources.gpu of a component, which writes one of both.
    With a larger one, or none, an engine passes that does not fit where it runs.

    Pass: nvidia.com/gpu.product NVIDIA-H200 before, NVIDIA-H100-80GB-HBM3 after.
    Fail: kthena-components/gpu h100 before, h200 after; h100 before, none after.
    Level: advisory.
    Source: this package: docs/security.md, Weaker checks.
    """
    before = _pods_by_path(change.before)
    for path, pod in _pods_by_path(change.after).items():
        yield from _larger(path, before.get(path), pod)


@part_of_rule
def _larger(path: str, before: PodFacts | None, after: PodFacts) -> Iterator[Finding]:
    """Report an update that names no GPU any more, or one with more memory."""
    had = None if before is None else before.gpu
    if not isinstance(had, GpuFacts):
        return
    require_known(path, after.gpu)
    has = after.gpu
    if has is None:
        seen = "no GPU"
    elif isinstance(has, GpuFacts) and has.memory_gib > had.memory_gib:
        seen = f"{has.name} with {has.memory_gib:g} GiB"
    else:
        return
    old = f"named {had.name} with {had.memory_gib:g} GiB before the update"
    seen = f"{old} and names {seen} now, so the rules about memory find less"
    yield advise(path, seen, "name the GPU of the nodes on which the pods run")


def _pods_by_path(body: Mapping[str, Any]) -> dict[str, PodFacts]:
    """Return the pods of an object's engines, by the paths of their GPUs."""
    facts = read_manifest(body)
    pods = [(e.entry, e.worker) for e in facts.engines] if facts is not None else []
    return {pod.gpus_path: pod for pair in pods for pod in pair if pod is not None}


ANY_CHANGE = (gpu_named_larger,)
"""Rules about objects of all kinds, whether they are updated in place or replaced."""


def check_change(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str = "", *, replaced: bool = False
) -> list[Finding]:
    """Check an update of one object by every rule of its kind, and by those of all kinds.

    Args:
        before: The object as it was applied.
        after: The object as it would be applied. Values may be Unknown or late strings.
        path: Its path in the caller's input; a prefix of every path.
        replaced: Whether it is deleted and created again.
    """
    kind = group_kind(after)
    change = Change(before, after)
    known = find_kind(kind) if kind == group_kind(before) else None
    own = known.change_rules if known and not replaced else ()
    return check_by((*own, *(ANY_CHANGE if known else ())), change, path)
