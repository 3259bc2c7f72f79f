"""The rules kv-halves-alike and kv-halves-parallel, for halves that are objects of their own.

The rules are documented in core/rules/kv_halves_alike.py and kv_halves_parallel.py.
"""

from collections.abc import Iterator, Sequence

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import EnginePart
from kthena_components.core.facts.split_objects import SplitObjects
from kthena_components.core.findings import Finding, Level, checked_by
from kthena_components.core.rules.kv_halves_alike import kv_halves_alike
from kthena_components.core.rules.kv_halves_parallel import kv_halves_parallel
from kthena_components.core.rules.support.fixes import placed
from kthena_components.core.values.read import group_kind, is_map, mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.selectors import POOLS

_RULES = (kv_halves_alike, kv_halves_parallel)
_ROLE = "llm-d.ai/role"
"""The label by which the scheduler of llm-d finds prefill and decode (llm-d-inference-scheduler
pkg/plugins/filter/pd_role.go)."""
_SEVERAL = 2
_ELSEWHERE = Unknown("other halves may be elsewhere")


def kv_halves_of_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report a prefill and a decode engine that get requests together and do not fit.

    That is so if an InferencePool selects both, or if the pods of one have llm-d's routing sidecar
    and the labels of both differ in the role only.
    """
    for group in (*_by_pool(objects), *_by_labels(objects.parts)):
        if len(group) < _SEVERAL:
            continue
        alone = {_said(finding) for part in group for finding in _checked([part])}
        for finding in _checked(group):
            if finding.level is not Level.UNKNOWN and _said(finding) not in alone:
                yield finding


def _said(finding: Finding) -> tuple[str, str]:
    return finding.path, finding.seen


def _checked(group: Sequence[EnginePart]) -> list[Finding]:
    engines = tuple(map(_engine, group))
    facts = ServingFacts(path="", name="", engines=engines, told=(), unread=_ELSEWHERE)
    return [placed(finding) for finding in checked_by(_RULES, facts)]


def _engine(part: EnginePart) -> EngineFacts:
    """Return an engine whose name says which half it is, if its labels do."""
    role = dict(part.labels).get(_ROLE, "") if part.labelled else ""
    name = part.name if role in part.name else f"{part.name} ({role})"
    return EngineFacts(
        path=part.path, name=name, pods=part.count, replicas=1, entry=part.pod, worker=None
    )


def _by_pool(objects: SplitObjects) -> Iterator[list[EnginePart]]:
    for body in objects.named.values():
        if group_kind(body) not in POOLS:
            continue
        selector = mapping(mapping(body.get("spec")).get("selector"))
        labels = selector["matchLabels"] if is_map(selector.get("matchLabels")) else selector
        space = str(mapping(body.get("metadata")).get("namespace") or "")
        wanted = set(labels.items()) if all(isinstance(v, str) for v in labels.values()) else None
        if wanted:
            yield objects.labelled(space, wanted)


def _by_labels(parts: Sequence[EnginePart]) -> Iterator[list[EnginePart]]:
    groups: dict[object, list[EnginePart]] = {}
    for part in parts:
        rest = frozenset(pair for pair in part.labels if pair[0] != _ROLE)
        if part.labelled and rest != part.labels:
            groups.setdefault((part.namespace, rest), []).append(part)
    for group in groups.values():
        if any(part.pod.sidecar is not None for part in group):
            yield group
