"""What the API server takes of the kinds that are emitted: their CRDs, or our own words.

Other systems' kinds are held against the fields of their CRDs. Our own schemas are closed where
only our fields can stand, and open where a user's template passes through. They say less than
Kubernetes' and Kthena's own do, and nothing that those do not say.
"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from kthena_components.checker.crd_schema import crd_schema
from kthena_components.core.facts.context import Context
from kthena_components.core.objects.object import read_object

Schema = Mapping[str, Any]

_INT32: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_SIZE: Schema = {**_INT32, "minimum": 1}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
_TEXT: Schema = {"type": "string"}
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME: Schema = {"type": "string", "pattern": f"^{_LABEL}$", "maxLength": 63}
_SERVICE_NAME: Schema = {**_NAME, "pattern": "^[a-z](?:[-a-z0-9]*[a-z0-9])?$"}
_SUBDOMAIN: Schema = {"type": "string", "pattern": rf"^{_LABEL}(?:\.{_LABEL})*$", "maxLength": 253}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_LABELS: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": "string",
        "pattern": "^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "maxLength": 63,
    },
}
_AMOUNTS: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": "string",
        "pattern": r"^[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$",
    },
}
_COUNT_OR_PERCENT: Schema = {
    "anyOf": [_INT32, {"type": "string", "pattern": "^(?:100|[0-9]{1,2})%$"}]
}


def _map(required: Schema, optional: Schema | None = None) -> Schema:
    """Give the schema of a closed mapping."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


def _object(version: str, kind: str, name: Schema, spec: Schema) -> Schema:
    metadata = _map({"name": name}, {"namespace": _NAME, "labels": _LABELS, "annotations": _TEXTS})
    identity = {"apiVersion": {"const": version}, "kind": {"const": kind}}
    return _map({**identity, "metadata": metadata, "spec": spec})


_CONTAINER: Schema = {
    "type": "object",
    "properties": {
        "name": _NAME,
        "command": _list(_TEXT),
        "args": _list(_TEXT),
        "env": _list({"type": "object", "required": ["name"], "properties": {"name": _TEXT}}),
        "ports": _list(_map({"containerPort": _PORT}, {"name": {**_NAME, "maxLength": 15}})),
    },
    "required": ["name"],
}
_TEMPLATE: Schema = {
    "type": "object",
    "properties": {
        "metadata": _map({}, {"labels": _LABELS, "annotations": _TEXTS}),
        "spec": {
            "type": "object",
            "properties": {
                "containers": _list(_CONTAINER, minItems=1),
                "initContainers": _list(_CONTAINER),
            },
            "required": ["containers"],
        },
    },
    "required": ["spec"],
    "additionalProperties": False,
}
"""Source: kubernetes pkg/apis/core/validation/validation.go."""

_TIERS: Schema = {
    **_map(
        {"mode": {"enum": ["hard", "soft"]}},
        {"highestTierAllowed": _INT32, "highestTierName": {**_TEXT, "maxLength": 253}},
    ),
    "not": {"required": ["highestTierAllowed", "highestTierName"]},
}
_POD_GROUP = _object(
    "scheduling.volcano.sh/v1beta1",
    "PodGroup",
    _SUBDOMAIN,
    _map(
        {"minMember": _INT32, "minResources": _AMOUNTS},
        {
            "queue": _SUBDOMAIN,
            "networkTopology": _TIERS,
            "subGroupPolicy": _list(
                _map(
                    {
                        "name": {**_TEXT, "maxLength": 253},
                        "labelSelector": _map({"matchLabels": _LABELS}),
                        # Optional in the CRD, but the scheduler ignores a policy without keys.
                        "matchLabelKeys": _list(_TEXT, minItems=1),
                        "subGroupSize": _SIZE,
                        "minSubGroups": _INT32,
                    },
                    {"networkTopology": _TIERS},
                )
            ),
        },
    ),
)
"""Source: Volcano v1.14 config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml; the tier
rule is its webhook's, pkg/webhooks/admission/podgroups."""

_QUEUE = _object(
    "scheduling.volcano.sh/v1beta1",
    "Queue",
    _SUBDOMAIN,
    _map(
        {"weight": {"type": "integer", "minimum": 1, "maximum": 65535}},
        {
            "reclaimable": {"type": "boolean"},
            "parent": _SUBDOMAIN,
            "capability": _AMOUNTS,
            "deserved": _AMOUNTS,
            "guarantee": _map({"resource": _AMOUNTS}),
        },
    ),
)
"""Source: Volcano v1.14 config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml."""

_STATEFUL_SET = _object(
    "apps/v1",
    "StatefulSet",
    {**_SERVICE_NAME, "maxLength": 52},
    _map(
        {
            "replicas": _SIZE,
            "serviceName": _SERVICE_NAME,
            "podManagementPolicy": {"const": "Parallel"},
            "selector": _map({"matchLabels": {**_LABELS, "minProperties": 1}}),
            "template": _TEMPLATE,
        },
        {"ordinals": _map({"start": _INT32})},
    ),
)
"""Source: kubernetes pkg/apis/apps/validation/validation.go. Parallel is ours: a gang needs it."""

_SERVICE = _object(
    "v1",
    "Service",
    _SERVICE_NAME,
    _map(
        {"selector": {**_LABELS, "minProperties": 1}},
        {
            "type": {"const": "ClusterIP"},
            "clusterIP": {"const": "None"},
            "publishNotReadyAddresses": {"type": "boolean"},
            "ports": _list(
                _map({"port": _PORT}, {"name": {**_NAME, "maxLength": 15}, "targetPort": _PORT})
            ),
        },
    ),
)
"""Source: kubernetes pkg/apis/core/validation/validation.go ValidateService."""


def _model_serving(version: str) -> Schema:
    """Give the schema of a ModelServing in the CRD of one Kthena version.

    Source: Kthena, tags v0.1.0 to v1.0.0,
    charts/kthena/charts/workload/crds/workload.serving.volcano.sh_modelservings.yaml.
    """
    first, percent = version == "0.1", version in {"0.4", "1.0"}
    update = {"maxUnavailable": _COUNT_OR_PERCENT, "partition": _INT32}
    update |= {"partition": _COUNT_OR_PERCENT} if percent else {}
    types = ["ServingGroupRollingUpdate", *(["RoleRollingUpdate"] if percent else [])]
    strategy = _map({"type": {"enum": types}}, {"rollingUpdateConfiguration": _map({}, update)})
    required = {
        "replicas": _INT32,
        "schedulerName": {"const": "volcano"} if first else _TEXT,
        "template": _serving_group(version),
    }
    recovery = {"enum": ["ServingGroupRecreate", "RoleRecreate", "None"]}
    scope = _map({}, {"roles": _list(_TEXT), "target": {"enum": ["All", "Entry", "Worker"]}})
    plugin = _map({"name": _TEXT}, {"type": {"const": "BuiltIn"}, "config": {}, "scope": scope})
    plugins = {} if version in {"0.1", "0.2"} else {"plugins": _list(plugin)}
    optional = {"recoveryPolicy": recovery, "rolloutStrategy": strategy, **plugins}
    spec = _map(required, optional)
    return _object("workload.serving.volcano.sh/v1alpha1", "ModelServing", _SERVICE_NAME, spec)


def _serving_group(version: str) -> Schema:
    flat = _map({"mode": {"enum": ["hard", "soft"]}}, {"highestTierAllowed": _INT32})
    split = _map({}, {"groupPolicy": _TIERS, "rolePolicy": _TIERS})
    minima = {"type": "object", "additionalProperties": _INT32}
    fields = {
        "restartGracePeriodSeconds": {"type": "integer", "minimum": 0},
        "gangPolicy": _map({}, {"minRoleReplicas": minima}),
        "networkTopology": flat if version == "0.1" else split,
    }
    return _map({"roles": _list(_role(version), minItems=1, maxItems=4)}, fields)


def _role(version: str) -> Schema:
    name = _NAME if version in {"0.1", "0.2"} else _SERVICE_NAME
    required = {
        "name": {**name, "maxLength": 12},
        "replicas": _INT32,
        "entryTemplate": _TEMPLATE,
        "workerReplicas": _INT32,
    }
    budget = {"maxUnavailable": _COUNT_OR_PERCENT} if version == "1.0" else {}
    return _map(required, {"workerTemplate": _TEMPLATE, **budget})


def _model_infer(group: str) -> Schema:
    """Give the schema of a ModelInfer, and what its webhook says of single fields.

    Source: volcano-sh/kthena 98380a67 charts/matrixinfer and e4fb6663 charts/kthena,
    charts/workload/crds/*_modelinfers.yaml; pkg/infer-controller/webhook/validator.go.
    """
    tiers = _map({"mode": {"enum": ["hard", "soft"]}}, {"highestTierAllowed": _INT32})
    minima = {"type": "object", "additionalProperties": _INT32}
    update = {"maxUnavailable": _COUNT_OR_PERCENT, "maxSurge": _COUNT_OR_PERCENT}
    rolling = _map({}, {**update, "partition": _INT32})
    kind = {"enum": ["InferGroupRollingUpdate"]}
    fields = {
        "restartGracePeriodSeconds": {"type": "integer", "minimum": 0},
        "gangSchedule": _map({}, {"minRoleReplicas": minima, "networkTopology": tiers}),
    }
    roles = _list(_role("0.1"), minItems=1, maxItems=4)
    spec = _map(
        {
            "replicas": _INT32,
            "schedulerName": {"const": "volcano"},
            "template": _map({"roles": roles}, fields),
        },
        {
            "recoveryPolicy": {"enum": ["InferGroupRecreate", "RoleRecreate", "None"]},
            "rolloutStrategy": _map({"type": kind}, {"rollingUpdateConfiguration": rolling}),
        },
    )
    return _object(f"{group}/v1alpha1", "ModelInfer", _SERVICE_NAME, spec)


_MODEL_INFER: Schema = {
    "oneOf": [_model_infer(group) for group in ("workload.matrixinfer.ai", "workload.volcano.sh")]
}
_CONFIG_MAP: Schema = _map(
    {
        "apiVersion": {"const": "v1"},
        "kind": {"const": "ConfigMap"},
        "metadata": _map(
            {"name": _SUBDOMAIN}, {"namespace": _NAME, "labels": _LABELS, "annotations": _TEXTS}
        ),
        "data": _TEXTS,
    }
)

_SCHEMAS: Mapping[str, Schema] = {
    "ConfigMap": _CONFIG_MAP,
    "PodGroup": _POD_GROUP,
    "Queue": _QUEUE,
    "StatefulSet": _STATEFUL_SET,
    "Service": _SERVICE,
    "ModelInfer": _MODEL_INFER,
    **{f"ModelServing {v}": _model_serving(v) for v in ("0.1", "0.2", "0.3", "0.4", "1.0")},
}
_VALIDATORS = {name: Draft202012Validator(schema) for name, schema in _SCHEMAS.items()}


def schema_errors(body: Mapping[str, Any], kthena_version: str = "1.0") -> list[str]:
    """Say what of an object its kind's schema refuses, one line a place."""
    kind = str(body["kind"])
    name = f"{kind} {kthena_version}" if kind == "ModelServing" else kind
    if name not in _VALIDATORS:
        context = Context(versions={"kthena": kthena_version})
        return [str(finding) for finding in crd_schema(read_object(body, context=context))]
    errors = _VALIDATORS[name].iter_errors(dict(body))
    return [f"{kind} {error.json_path}: {error.message}" for error in errors]
