"""The shapes of Volcano's objects: which fields there are, of which kind and in which range.

Source: Volcano v1.14 config/crd/volcano/bases. A field that the CRD does not know is dropped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.checks.kthena_reading import KTHENA_VERSIONS
from kthena_components.core.checks.kthena_shape import (
    Amount,
    Fields,
    Free,
    Items,
    Ruled,
    Schema,
    Table,
    Text,
    Whole,
    judge_shape,
)
from kthena_components.core.checks.volcano_reading import (
    HYPER_NODE,
    JOB,
    POD_GROUP,
    QUEUE,
    identity,
)
from kthena_components.core.findings import Finding

_NAME, _AMOUNTS, _COUNT = Text(longest=253), Table(Amount()), Whole(least=0)
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
        "labelSelector": Free(),
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
_QUEUE = Fields(
    fields={
        "weight": Ruled(),
        "capability": _AMOUNTS,
        "deserved": _AMOUNTS,
        "guarantee": Fields(fields={"resource": _AMOUNTS}),
        "reclaimable": Free(),
        "parent": Text(),
        "priority": _COUNT,
        "dequeueStrategy": Text(one_of=("fifo", "traverse")),
        "affinity": Free(),
        "extendClusters": Items(of=Free()),
        "type": Text(),
    }
)
_HYPER_NODE = Fields(fields={"tier": Ruled(), "tierName": _NAME, "members": Ruled()})
_JOB = Fields(fields={"networkTopology": _TOPOLOGY, "queue": Text()}, partial=True)
_SPECS: Mapping[tuple[str, str], Schema] = {
    POD_GROUP: _POD_GROUP,
    QUEUE: _QUEUE,
    HYPER_NODE: _HYPER_NODE,
    JOB: _JOB,
}


def volcano_schema(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Each field has the kind, the words and the range that its CRD gives it.

    Pass: subGroupSize 2.
    Fail: subGroupSize 0; mode Hard; matchPolicy, which older documents show.
    Level: mandatory for what the API server refuses, advisory for what it drops.
    Source: Volcano v1.14 config/crd/volcano/bases (podgroups, queues, hypernodes, jobs).
    """
    spec, shape = manifest.get("spec"), _SPECS.get(identity(manifest))
    if spec is not None and shape is not None:
        found = judge_shape(spec, shape, KTHENA_VERSIONS[-1], "spec")
        yield from (replace(finding, rule="volcano-schema") for finding in found)
