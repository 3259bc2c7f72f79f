"""Writes the Workspace or InferenceSet of a serving, and what it refers to.

Source: kaito-project/kaito v0.11.0 api/v1beta1; docs/backends/kaito.md lists every field.
"""

import json
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.manifest import WAIT_FOR
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan, prioritized
from kthena_components.core.plan.templates import with_env
from kthena_components.core.templates import Template
from kthena_components.systems.kaito.inference_config import config_map, config_name, config_text
from kthena_components.systems.kaito.options import node_labels_of, options_of
from kthena_components.systems.kaito.view import GROUP, INFERENCE_SET, WORKSPACE
from kthena_components.systems.kubernetes.backends import service

API_VERSION = f"{GROUP}/v1beta1"
NO_BENCHMARK = f"{GROUP}/disable-benchmark"
WORKSPACE_LABEL = f"{GROUP}/workspace"
SET_LABEL = f"inferenceset.{GROUP}/created-by"
_ENTRY_INDEX = {naming.POD_INDEX: "0"}
_VALUES = {naming.GROUP_SIZE: "1", naming.ENTRY_ADDRESS: "localhost", naming.WORKER_INDEX: "0"}
_OWN = [{"name": name, "value": value} for name, value in _VALUES.items()]
_ALIASES = [{"name": name, "value": _VALUES[same]} for name, same in naming.LWS_ENV.items()]
VARIABLES = (*_OWN, *_ALIASES)
"""Kthena's variables and those of LeaderWorkerSet, for a pod that is alone in its group."""
Body = dict[str, Any]


def set_name(plan: ServingPlan, role: RolePlan) -> str:
    """Name the Workspace or InferenceSet.

    A Workspace's Service has this name, so `<serving>` is not free.
    """
    return f"{plan.name}-{role.name}"


def engines_of(plan: ServingPlan) -> int:
    """Count the engines of all groups."""
    return plan.groups * sum(role.replicas for role in plan.roles)


def is_workspace(plan: ServingPlan) -> bool:
    """Return whether the serving is one Workspace; otherwise it is an InferenceSet.

    Only an InferenceSet can be scaled.
    """
    is_set = plan.autoscaled or options_of(plan).inference_set
    return engines_of(plan) == 1 and not is_set


def write_config(plan: ServingPlan, role: RolePlan) -> Body | None:
    """Write the ConfigMap with vLLM's flags; None for a pod template.

    A preset always has one: KAITO never adds it to the command line of running pods.
    """
    if options_of(plan).preset is None:
        return None
    text = config_text(plan, role)
    name = config_name(set_name(plan, role), text)
    return config_map(name, plan.namespace, {naming.NAME: plan.name}, text)


def write_set(plan: ServingPlan, role: RolePlan) -> Body:
    """Write the Workspace or InferenceSet."""
    labels = {"matchLabels": node_labels_of(plan)}
    kind, inference = options_of(plan).instance_type, _inference(plan, role)
    metadata = _metadata(plan, role)
    if is_workspace(plan):
        resource = {"count": role.pods, "labelSelector": labels}
        if kind is not None:
            resource["instanceType"] = kind
        return {**_object(WORKSPACE, metadata), "resource": resource, "inference": inference}
    # The CRD requires an instance type; for existing nodes it is empty.
    template = {"resource": {"instanceType": kind or ""}, "inference": inference}
    spec = {"replicas": engines_of(plan), "labelSelector": labels, "template": template}
    return {**_object(INFERENCE_SET, metadata), "spec": spec}


def pods_label(plan: ServingPlan) -> str:
    """Return the key of KAITO's label with the name of the set."""
    return WORKSPACE_LABEL if is_workspace(plan) else SET_LABEL


def write_front(plan: ServingPlan, role: RolePlan) -> Body | None:
    """Write the front Service: only the first pod of an engine serves."""
    if plan.expose is None:
        return None
    port = {"name": "http", "port": plan.expose.port, "targetPort": plan.expose.target_port}
    spec = {"type": "ClusterIP", "selector": entry_selector(plan, role), "ports": [port]}
    return service(plan.name, plan.namespace, {naming.NAME: plan.name}, spec)


def entry_selector(plan: ServingPlan, role: RolePlan) -> dict[str, str]:
    """Return the labels that only the first pod of each engine has."""
    return {pods_label(plan): set_name(plan, role), **_ENTRY_INDEX}


def _object(kind: str, metadata: Body) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}


def _metadata(plan: ServingPlan, role: RolePlan) -> Body:
    """Write the metadata: labels to select pods by, and until when Pulumi waits."""
    annotations = {WAIT_FOR: _until_ready(plan)}
    if not options_of(plan).benchmark:
        annotations[NO_BENCHMARK] = "true"
    return {
        "name": set_name(plan, role),
        "namespace": plan.namespace,
        "labels": {naming.NAME: plan.name, naming.ROLE: role.name},
        "annotations": annotations,
    }


def _until_ready(plan: ServingPlan) -> str:
    """Wait until all engines serve. Without any, the status has no such number.

    How many there are depends on the autoscaler, if there is one.
    """
    if is_workspace(plan):
        return "condition=WorkspaceSucceeded"
    ready, engines = "condition=InferenceSetReady", engines_of(plan)
    if plan.autoscaled or not engines:
        return ready
    return json.dumps([ready, f"jsonpath={{.status.readyReplicas}}={engines}"])


def _inference(plan: ServingPlan, role: RolePlan) -> Body:
    """Write `inference` with a preset, its token, config and adapters, or with a template."""
    options, config = options_of(plan), write_config(plan, role)
    if options.preset is None or config is None:
        return {"template": _template(plan, role)}
    preset: Body = {"name": options.preset}
    if role.stated.hugging_face_token is not None:
        preset["presetOptions"] = {"modelAccessSecret": role.stated.hugging_face_token.name}
    written = {"preset": preset, "config": config["metadata"]["name"]}
    if options.adapters:
        written["adapters"] = [
            {"source": {"name": name, "image": a.image, "imagePullSecrets": a.pull_secrets}}
            for name, a in options.adapters.items()
        ]
    return written


def _template(plan: ServingPlan, role: RolePlan) -> Template:
    """Add labels, the scheduler, the queue, and Kthena's variables: its templates run unchanged."""
    metadata = role.entry.get("metadata") or {}
    queue = {} if plan.queue is None else {naming.QUEUE_NAME: plan.queue}
    annotations = {**(metadata.get("annotations") or {}), **queue}
    own = {naming.NAME: plan.name, naming.ROLE: role.name, naming.ENTRY: "true"}
    labels = {**(metadata.get("labels") or {}), **own}
    spec = with_env(with_env(prioritized(plan, role.entry), _ALIASES, first=True), _OWN)["spec"]
    return {
        "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})},
        "spec": {**spec, "schedulerName": plan.scheduler},
    }
