"""The schema of a ModelServing, in every version of Kthena.

Embedded pods have Kubernetes' own schema (core/schema/pod.py). rules.py checks rules between
fields.

Source: Kthena charts/kthena/charts/workload/crds/workload.serving.volcano.sh_modelservings.yaml at
v0.1.0, v0.2.0, v0.3.0, v0.4.0 and v1.0.0.
"""

from dataclasses import replace

from kthena_components.core.schema.language import (
    Budget,
    Fields,
    Free,
    Items,
    Ruled,
    Schema,
    Since,
    Table,
    Text,
    Whole,
)
from kthena_components.core.schema.metadata import METADATA
from kthena_components.core.schema.pod import shape_of
from kthena_components.systems.kthena.view import BY_GROUP, BY_ROLE

GROUP_RECREATE = "ServingGroupRecreate"
SURGE = "maxSurge"
"""Users write it in many places; it was a field in one of them, before 0.3."""


def _part(*required: str, **fields: Schema | Since) -> Fields:
    """Describe some fields of a larger map. A required field is a text by default."""
    named = {name: fields.get(name, Text()) for name in (*required, *fields)}
    return Fields(fields=named, required=required, partial=True)


_TEXTS = Table(Text())
_POD = shape_of("PodSpec")
_ALIASES = shape_of("HostAlias")
_TEMPLATE = Fields(
    fields={
        "metadata": Fields(fields={"labels": _TEXTS, "annotations": _TEXTS}),
        "spec": replace(
            _POD,
            fields={
                **_POD.fields,
                "hostAliases": Since(
                    ("0.1", Items(of=_ALIASES, keys=("ip",))), ("0.3", Items(of=_ALIASES))
                ),
            },
        ),
    }
)
_ROLE = Fields(
    required=("name", "entryTemplate", "workerReplicas"),
    fields={
        "name": Text(),
        "replicas": Whole(),
        "entryTemplate": _TEMPLATE,
        "workerReplicas": Whole(),
        "workerTemplate": _TEMPLATE,
        "maxUnavailable": Since(("1.0", Budget())),
        SURGE: Ruled(),
    },
)
_MODE, _TIER = Text(one_of=("hard", "soft")), Whole(bits=64)
_POLICY = Fields(
    fields={
        "mode": _MODE,
        "highestTierAllowed": Since(("0.1", _TIER), ("0.3", Whole(bits=64, least=0))),
        "highestTierName": Since(("0.1", Text()), ("0.3", Text(longest=253))),
    }
)
_GROUP = Fields(
    required=("roles",),
    fields={
        "restartGracePeriodSeconds": Whole(bits=64),
        "gangPolicy": Fields(fields={"minRoleReplicas": Table(Whole())}),
        "networkTopology": Since(
            ("0.1", Fields(fields={"mode": _MODE, "highestTierAllowed": _TIER})),
            ("0.2", Fields(fields={"groupPolicy": _POLICY, "rolePolicy": _POLICY})),
        ),
        "roles": Items(of=_ROLE),
        SURGE: Ruled(),
    },
)
_ROLLING = Fields(
    fields={
        "maxUnavailable": Budget(),
        "partition": Since(("0.1", Whole()), ("0.4", Budget())),
        SURGE: Ruled(),
    }
)
_STRATEGIES = Since(("0.1", Text(one_of=(BY_GROUP,))), ("0.4", Text(one_of=(BY_GROUP, BY_ROLE))))
_PLUGIN = Fields(
    required=("name",),
    fields={
        "name": Text(),
        "type": Text(one_of=("BuiltIn",)),
        "config": Free(),
        "scope": Fields(fields={"roles": Items(of=Text()), "target": Text()}),
    },
)
_SPREAD = Fields(
    fields={
        "maxSkew": Whole(),
        "topologyKey": Text(),
        "whenUnsatisfiable": Text(),
        "labelSelector": Free(),
    }
)
_SPEC = Fields(
    required=("template",),
    fields={
        "replicas": Whole(),
        "schedulerName": Text(),
        "plugins": Since(("0.3", Items(of=_PLUGIN))),
        "template": _GROUP,
        "rolloutStrategy": Fields(
            fields={"type": _STRATEGIES, "rollingUpdateConfiguration": _ROLLING, SURGE: Ruled()}
        ),
        "recoveryPolicy": Text(one_of=(GROUP_RECREATE, "RoleRecreate", "None")),
        "topologySpreadConstraints": Since(("0.1", Items(of=_SPREAD)), ("0.2", None)),
        SURGE: Ruled(),
    },
)
MODEL_SERVING = _part(
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    apiVersion=Text(one_of=("workload.serving.volcano.sh/v1alpha1",)),
    kind=Text(one_of=("ModelServing",)),
    metadata=METADATA,
    spec=_SPEC,
)
