"""The schemas of Volcano's objects: their fields, types and ranges.

Source: Volcano v1.14 config/crd/volcano/bases. A field that the CRD does not define is dropped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.findings import Finding
from kthena_components.core.objects.kinds import HYPER_NODE, JOB, POD_GROUP, QUEUE
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.schema.language import (
    Amount,
    Fields,
    Items,
    Ruled,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
)
from kthena_components.core.schema.metadata import METADATA, judge_metadata
from kthena_components.core.schema.quick import judge_quickly
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from kthena_components.core.values.read import mapping, sequence

_RULE = "volcano-schema"
_NAME, _AMOUNTS, _COUNT = Text(longest=253), Table(Amount()), Whole(least=0)
SELECTOR = Fields(
    fields={
        "matchLabels": Table(Text()),
        "matchExpressions": Items(
            of=Fields(
                required=("key", "operator"),
                fields={"key": Text(), "operator": Text(), "values": Items(of=Text())},
            )
        ),
    }
)
_TOPOLOGY = Fields(
    fields={
        "mode": Text(one_of=("hard", "soft")),
        "highestTierAllowed": Whole(bits=64, least=0),
        "highestTierName": _NAME,
    }
)
_POLICY = Fields(
    fields={
        "name": _NAME,
        "labelSelector": SELECTOR,
        "matchLabelKeys": Items(of=Text()),
        "subGroupSize": Whole(least=1),
        "minSubGroups": _COUNT,
        "networkTopology": _TOPOLOGY,
    }
)
_POD_GROUP = Fields(
    fields={
        "minMember": _COUNT,
        "minTaskMember": Table(Whole()),
        "queue": _NAME,
        "priorityClassName": _NAME,
        "minResources": _AMOUNTS,
        "networkTopology": _TOPOLOGY,
        "subGroupPolicy": Items(of=_POLICY),
    }
)
_NODE_GROUPS = Fields(
    fields={
        "requiredDuringSchedulingIgnoredDuringExecution": Items(of=Text()),
        "preferredDuringSchedulingIgnoredDuringExecution": Items(of=Text()),
    }
)
_CLUSTER = Fields(fields={"name": Text(), "weight": Whole(), "capacity": _AMOUNTS})
_QUEUE = Fields(
    fields={
        "weight": Ruled(),
        "capability": _AMOUNTS,
        "deserved": _AMOUNTS,
        "guarantee": Fields(fields={"resource": _AMOUNTS}),
        "reclaimable": Switch(),
        "parent": Text(),
        "priority": _COUNT,
        "dequeueStrategy": Text(one_of=("fifo", "traverse")),
        "affinity": Fields(
            fields={"nodeGroupAffinity": _NODE_GROUPS, "nodeGroupAntiAffinity": _NODE_GROUPS}
        ),
        "extendClusters": Items(of=_CLUSTER),
        "type": _NAME,
    }
)
_HYPER_NODE = Fields(fields={"tier": Ruled(), "tierName": _NAME, "members": Ruled()})
_JOB = Fields(fields={"networkTopology": _TOPOLOGY, "queue": Text()}, partial=True)
_SPECS: Mapping[GroupKind, Schema] = {
    POD_GROUP: _POD_GROUP,
    QUEUE: _QUEUE,
    HYPER_NODE: _HYPER_NODE,
    JOB: _JOB,
}


def volcano_schema(found: Object) -> Iterator[Finding]:
    """Each field has the type, the values and the range that its CRD defines.

    Pass: subGroupSize 2.
    Fail: subGroupSize 0; mode Hard; matchPolicy, which older documentation shows.
    Level: mandatory for what the API server rejects, advisory for what it drops.
    Source: Volcano v1.14 config/crd/volcano/bases (podgroups, queues, hypernodes, jobs).
    """
    spec, shape = found.body.get("spec"), _SPECS.get(found.group_kind)
    if spec is not None and shape is not None:
        yield from _judged(spec, shape, "spec")
    if shape is not None:
        yield from _judged(found.body.get("metadata") or {}, METADATA, "metadata")
        yield from judge_metadata(found.body.get("metadata"), _RULE)
    for index, member in enumerate(sequence(mapping(spec).get("members"))):
        labels = mapping(mapping(member).get("selector")).get("labelMatch")
        if isinstance(labels, Mapping):
            yield from _judged(labels, SELECTOR, f"spec.members[{index}].selector.labelMatch")


def _judged(value: object, shape: Schema, path: str) -> Iterator[Finding]:
    found = judge_quickly(value, shape, KTHENA_VERSIONS[-1], path)
    return (replace(finding, rule=_RULE) for finding in found)
