"""Resources as the engine hands them to a policy, and what the policies say about them."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from google.protobuf import json_format, struct_pb2  # type: ignore[import-untyped]
from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    StackValidationArgs,
)
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from kthena_components.core.plan.manifest import Manifest
from kthena_components.policies.pack import POLICIES
from kthena_components.policies.secret_marks_and_stack_gpu import read_marked
from tests.support.specs import VLLM, image_of

Args = dict[str, Any]
UNKNOWN = UNKNOWN_STRING_VALUE
"""What the engine puts for a string that a preview does not know."""
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a mark of Pulumi's
GPU = "nvidia.com/gpu"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
STATEFUL_SET = "kubernetes:apps/v1:StatefulSet"
POD = "kubernetes:core/v1:Pod"
MODEL_SERVING = "kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing"
COMPONENT = "kthena:index:ModelServing"

_OPTIONS = PolicyResourceOptions(
    protect=False,
    ignore_changes=[],
    delete_before_replace=None,
    aliases=[],
    custom_timeouts=PolicyCustomTimeouts(0, 0, 0),
    additional_secret_outputs=[],
)
_numbers = count()


def container(name: str = "main", gpus: object = 8, **fields: Any) -> Args:
    """Give a container of a vLLM image; `gpus=None` leaves out the resources."""
    resources = {} if gpus is None else {"resources": {"limits": {GPU: gpus}}}
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - NCCL's shared memory
    image = image_of(str(fields["command"])) if "command" in fields else VLLM
    return {"name": name, "image": image, "volumeMounts": mounts, **resources, **fields}


def vllm(*args: str, **fields: Any) -> Args:
    """Give a container that starts vLLM by its image, with these arguments."""
    return container(args=["--model", "Qwen/Qwen3-32B", *args], **fields)


def pod(*containers: object, name: str = "chat", **spec: Any) -> Args:
    """Give a Pod, which is a pod template as well."""
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    spec = {"containers": list(containers), "volumes": volumes, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def workload(*containers: object, name: str = "chat", replicas: int = 1, **spec: Any) -> Args:
    """Give a Deployment or a StatefulSet."""
    template = pod(*containers, name="", **spec)
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "template": template}}


def model_serving(entry: object, worker: object = None, workers: int = 0) -> Args:
    """Give a Kthena ModelServing of one role."""
    role: Args = {
        "name": "decode",
        "replicas": 1,
        "entryTemplate": entry,
        "workerReplicas": workers,
    }
    if worker is not None:
        role["workerTemplate"] = worker
    spec = {"replicas": 1, "schedulerName": "volcano", "template": {"roles": [role]}}
    return {"metadata": {"name": "chat", "namespace": "serving"}, "spec": spec}


def type_of(body: Mapping[str, Any]) -> str:
    """Give the Pulumi type of a manifest."""
    version = str(body["apiVersion"])
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{body['kind']}"


def secret(value: Any) -> Args:
    """Mark a value as secret, as the engine sends it."""
    return {SIGNATURE: SECRET_SIGNATURE, "value": value}


def seen_by_policy(props: Mapping[str, Any]) -> Any:
    """Send properties through the engine's wire format: numbers become floats, maps proxies."""
    sent = struct_pb2.Struct()
    sent.update(props)
    return unknown_checking_proxy(read_marked(json_format.MessageToDict(sent)))


def resource(
    resource_type: str, props: Mapping[str, Any], config: Args | None = None
) -> ResourceValidationArgs:
    """Give the argument of a resource policy."""
    urn = f"urn:pulumi:dev::test::{resource_type}::r{next(_numbers)}"
    return ResourceValidationArgs(
        resource_type, seen_by_policy(props), urn, urn.rpartition("::")[2], _OPTIONS, None, config
    )


def policy(name: str) -> Any:
    """Find a policy of the pack."""
    (found,) = (policy for policy in POLICIES if policy.name == name)
    return found


def refusals(resource_type: str, props: Mapping[str, Any], config: Args | None = None) -> str:
    """Give what the mandatory policy reports about a resource, one finding a line."""
    return _reported("serving-rules", resource_type, props, config)


def advice(resource_type: str, props: Mapping[str, Any], config: Args | None = None) -> str:
    """Give what the advisory policy reports about a resource, one finding a line."""
    return _reported("serving-advice", resource_type, props, config)


def silent(resource_type: str, props: Mapping[str, Any]) -> bool:
    """Tell whether no policy has anything to say about a resource."""
    return not refusals(resource_type, props) and not advice(resource_type, props)


def _reported(name: str, resource_type: str, props: Mapping[str, Any], config: Args | None) -> str:
    found: list[str] = []

    def report(message: str, urn: str | None) -> None:
        assert urn is None, "the engine names the resource itself"
        found.append(message)

    validated = policy(name).validate(resource(resource_type, props, config), report)
    assert validated is None
    return "\n".join(found)


def in_stack(body: Mapping[str, Any], provider: str = "default") -> PolicyResource:
    """Give a manifest as a stack policy gets it, deployed through some provider."""
    resource_type, name = type_of(body), str(body["metadata"]["name"])
    cluster = PolicyProviderResource("pulumi:providers:kubernetes", {}, f"urn:{provider}", provider)
    urn = f"urn:pulumi:dev::test::{resource_type}::{provider}/{name}"
    return PolicyResource(
        resource_type, seen_by_policy(body), urn, name, _OPTIONS, cluster, None, [], {}
    )


def group_refusals(
    resources: list[PolicyResource], config: Args | None = None, name: str = "serving-groups"
) -> list[tuple[str, str]]:
    """Give what the stack policy reports: the name of the resource it is about, and the message."""
    found: list[tuple[str, str]] = []

    def report(message: str, urn: str | None) -> None:
        found.append((str(urn).rpartition("::")[2], message))

    policy(name).validate(StackValidationArgs(resources, config), report)
    return found


def group_advice(
    resources: list[PolicyResource], config: Args | None = None
) -> list[tuple[str, str]]:
    """Give what the stack policy that advises reports, in the same way."""
    return group_refusals(resources, config, "serving-groups-advice")


def bodies(manifests: tuple[Manifest, ...]) -> list[Args]:
    """Give copies of what was emitted."""
    return [dict(manifest.body) for manifest in manifests]


def addressed(service: str) -> Args:
    """Give a Service with an address of its own where a headless one is needed."""
    metadata = {"name": service, "namespace": "serving"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": "ClusterIP"},
    }
