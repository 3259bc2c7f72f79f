"""How Volcano's objects, and whatever may hold a network topology, are read.

Nothing in a manifest makes a reader raise. A value that is not known yet is Unknown, one of the
wrong kind is None, and the rules between fields then keep silent: the shape speaks of it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.checks.kthena_reading import (
    gap_of,
    mapping,
    not_checked,
    text,
    whole,
)
from kthena_components.core.findings import Finding, Level
from kthena_components.core.known import MaybeInt, MaybeText, Unknown
from kthena_components.core.topology_spec import dns_name, is_dns_name

POD_GROUP = ("scheduling.volcano.sh", "PodGroup")
QUEUE = ("scheduling.volcano.sh", "Queue")
HYPER_NODE = ("topology.volcano.sh", "HyperNode")
JOB = ("batch.volcano.sh", "Job")
MODEL_SERVING = ("workload.serving.volcano.sh", "ModelServing")

NAME_LIMIT = 253
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST = 1600


@dataclass(frozen=True, slots=True)
class Topology:
    """One networkTopology, and where it stands."""

    path: str
    fields: Mapping[str, Any]

    @property
    def mode(self) -> MaybeText | None:
        """Give hard or soft; hard is the default of the CRD."""
        return text(self.fields.get("mode"), "hard")

    @property
    def tier(self) -> MaybeInt | None:
        """Give the highest tier that is allowed, when it is given as a number."""
        return whole(self.fields.get("highestTierAllowed"))

    @property
    def tier_name(self) -> MaybeText | None:
        """Give the highest tier that is allowed, when it is given by name."""
        name = text(self.fields.get("highestTierName"))
        return None if name == "" else name


Rule = Callable[[Mapping[str, Any]], Iterator[Finding]]
TopologyRule = Callable[[Topology], Iterator[Finding]]


def identity(manifest: object) -> tuple[str, str]:
    """Give the API group and the kind of an object; the core group is an empty text."""
    fields = manifest if isinstance(manifest, Mapping) else {}
    version, kind = fields.get("apiVersion"), fields.get("kind")
    group = version.partition("/")[0] if isinstance(version, str) and "/" in version else ""
    return group, kind if isinstance(kind, str) else ""


def spec_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the spec of an object, empty where there is none."""
    return mapping(manifest.get("spec"))


def items(value: object) -> list[Any]:
    """Give the members of a list, none for whatever is not one."""
    return list(value) if isinstance(value, list | tuple) else []


def pairs(value: object) -> Iterator[tuple[object, Any]]:
    """List what a map holds; in YAML a key may be anything."""
    yield from mapping(value).items()


def gap_in(*values: object) -> Unknown | None:
    """Say why values cannot be judged, if they or what they hold directly is not known."""
    for value in values:
        inside = value.values() if isinstance(value, Mapping) else items(value)
        gap = gap_of(value) or next((gap for gap in map(gap_of, inside) if gap), None)
        if gap:
            return gap
    return None


def topologies(manifest: Mapping[str, Any]) -> Iterator[Topology]:
    """List the network topologies of a PodGroup, a Volcano Job or a ModelServing."""
    spec = spec_of(manifest)
    match identity(manifest):
        case ("scheduling.volcano.sh", "PodGroup"):
            places = [("spec.networkTopology", spec.get("networkTopology"))]
            for i, policy in enumerate(items(spec.get("subGroupPolicy"))):
                at = f"spec.subGroupPolicy[{i}].networkTopology"
                places.append((at, mapping(policy).get("networkTopology")))
        case ("batch.volcano.sh", "Job"):
            places = [("spec.networkTopology", spec.get("networkTopology"))]
            for i, task in enumerate(items(spec.get("tasks"))):
                policy = mapping(mapping(task).get("partitionPolicy"))
                at = f"spec.tasks[{i}].partitionPolicy.networkTopology"
                places.append((at, policy.get("networkTopology")))
        case ("workload.serving.volcano.sh", "ModelServing"):
            both = mapping(mapping(spec.get("template")).get("networkTopology"))
            at = "spec.template.networkTopology"
            places = [(f"{at}.{key}", both.get(key)) for key in ("groupPolicy", "rolePolicy")]
        case _:
            places = []
    for path, fields in places:
        if isinstance(fields, Mapping) or gap_of(fields):
            yield Topology(path, mapping(fields))


def name_problem(value: object, path: str, what: str) -> Iterator[Finding]:
    """Say when a name is no DNS-1123 subdomain. A missing one is nobody's mistake here."""
    rule, name = "volcano-name", text(value)
    if isinstance(name, Unknown):
        yield not_checked(path, name, rule)
    elif name is not None and not is_dns_name(name[: NAME_LIMIT + 1]):
        shown = name if len(name) <= NAME_LIMIT else f"{name[:40]}…"
        yield Finding(
            path=path,
            seen=f"'{shown}' is not a DNS-1123 subdomain (at most {NAME_LIMIT} of a-z, 0-9, '-' "
            f"and '.', each part starting and ending with a letter or digit), as {what} is",
            remedy=f"write '{dns_name(name[:40]) or 'research'}'",
            rule=rule,
        )


def tidy(finding: Finding) -> Finding:
    """Put a finding into one line of bearable length, whatever names it repeats."""
    path, seen, remedy = (
        _CONTROL.sub("?", part) for part in (finding.path, finding.seen, finding.remedy)
    )
    same = (path, seen, remedy) == (finding.path, finding.seen, finding.remedy)
    if same and len(seen) + len(remedy) <= _LONGEST:
        return finding
    return replace(finding, path=path, seen=_cut(seen), remedy=_cut(remedy))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST // 2 else f"{text[: _LONGEST // 2]}…"


def advise(path: str, seen: str, remedy: str, rule: str) -> Finding:
    """Say what is worth a look."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule, level=Level.ADVISORY)
