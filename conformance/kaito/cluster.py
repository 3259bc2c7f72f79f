"""A cluster with KAITO's real controller and webhook, and nodes with GPUs of several sorts.

KAITO listens on every address, so this runs in a network of its own: see namespace.py.
Source: kaito-project/kaito v0.11.0 cmd/workspace/main.go and charts/kaito/workspace.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from conformance.__main__ import Context
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.cluster.objects import takes_pods
from sandbox.cluster import Sandbox, Size, create
from sandbox.nodes import node
from toolchain.locate import ensure_sandbox
from toolchain.programs import cache_root

NAME = "kaito"
NAMESPACE = "serving"
NODES_EACH = 4
"""Nodes of each sort."""
EXISTING, CREATED = "byo", "azure-gpu-provisioner"
"""Who provides the nodes: they exist, or KAITO asks Azure for them."""
_SYSTEM, _PORT = "kaito-workspace", 9443
_CONFIG = "right"
_WEBHOOKS = ("workspace", "inferenceset")
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """Nodes of one sort, with the labels that GPU feature discovery sets."""

    product: str
    mebibytes: int
    """Memory of one GPU."""
    gpus: int
    compute: tuple[int, int]
    """CUDA compute capability."""

    @property
    def labels(self) -> dict[str, str]:
        """Labels by which a serving selects these nodes."""
        return {"nvidia.com/gpu.product": self.product, "nvidia.com/gpu.count": str(self.gpus)}

    def nodes(self) -> Iterator[Body]:
        """Return the Nodes."""
        major, minor = map(str, self.compute)
        labels = {
            **self.labels,
            "nvidia.com/gpu.memory": str(self.mebibytes),
            "nvidia.com/cuda.compute.major": major,
            "nvidia.com/cuda.compute.minor": minor,
            "team": "chat",
        }
        for number in range(NODES_EACH):
            made = node(f"{self.product.lower()}-{self.gpus}-{number}", "rack-0", self.gpus)
            made["metadata"]["labels"] |= labels
            yield made


_A100, _T4 = "NVIDIA-A100-SXM4-80GB", "Tesla-T4"
SORTS = (
    Sort(product="NVIDIA-H100-80GB-HBM3", mebibytes=81559, gpus=8, compute=(9, 0)),
    Sort(product="NVIDIA-L40S", mebibytes=46068, gpus=8, compute=(8, 9)),
    *(Sort(product=_A100, mebibytes=81920, gpus=gpus, compute=(8, 0)) for gpus in (1, 2, 8)),
    *(Sort(product=_T4, mebibytes=15360, gpus=gpus, compute=(7, 5)) for gpus in (1, 4)),
)


def start(context: Context) -> Sandbox:
    """Start a cluster with everything that KAITO needs, but not KAITO. The caller must stop it."""
    program = ensure_sandbox(os.environ, context.part.say, NAME)[NAME]
    sandbox = context.sandbox(Size(racks=1, nodes=1))
    try:
        files = sorted(program.data(cache_root()).glob("*.yaml"))
        sandbox.define(yaml.load(file.read_text(), yaml.CSafeLoader) for file in files)
        create(sandbox.api, _installation())
        create(sandbox.api, (made for sort in SORTS for made in sort.nodes()))
        api = sandbox.api
        sandbox.processes.wait("every Node", lambda: all(map(takes_pods, api.list("v1", "Node"))))
    except BaseException:
        sandbox.processes.stop_all()
        raise
    return sandbox


def serve(context: Context, sandbox: Sandbox, provisioner: str) -> None:
    """Start KAITO, after the one that ran before, and wait until its webhooks reject something."""
    program = ensure_sandbox(os.environ, context.part.say, NAME)[NAME]
    if NAME in sandbox.processes.running():
        sandbox.processes.stop(NAME)
    environ = {
        "KUBECONFIG": str(sandbox.layout.programs),
        "CLOUD_PROVIDER": "azure",  # needed for existing nodes, too
        "SYSTEM_NAMESPACE": _SYSTEM,
        "RELEASE_NAMESPACE": _SYSTEM,
        "WEBHOOK_SERVICE": _SYSTEM,
        "WEBHOOK_PORT": str(_PORT),
        "PRESET_REGISTRY_NAME": "mcr.microsoft.com/aks/kaito",
    }
    arguments = [
        f"--node-provisioner={provisioner}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--kube-client-qps=500",
        "--kube-client-burst=1000",
    ]
    sandbox.processes.start(NAME, program.binary(cache_root()), arguments, environ)
    for body in wrong_objects():
        sandbox.processes.wait(
            f"KAITO's webhook for {body['kind']}", partial(_denies, sandbox.api, body)
        )
    # The webhooks answer before the program knows any Node or ConfigMap.
    sandbox.processes.wait("KAITO", partial(_accepts, sandbox.api, right_object(provisioner)))
    for body in wrong_objects():
        said = _denial(sandbox.api, body)
        what = f"{provisioner}: a wrong {body['kind']} is rejected"
        context.part.check(what, holds="must not contain dots" in said, seen=said)


def right_object(provisioner: str) -> Body:
    """Return a Workspace that the webhook accepts."""
    body, _ = wrong_objects()
    kind = "" if provisioner == EXISTING else "Standard_ND96isr_H100_v5"
    metadata = {**body["metadata"], "name": "right"}
    resource = {**body["resource"], "instanceType": kind}
    inference = {**body["inference"], "config": _CONFIG}
    return {**body, "metadata": metadata, "resource": resource, "inference": inference}


def wrong_objects() -> tuple[Body, ...]:
    """Return an object for each webhook, which only the webhook rejects."""
    inference = {"preset": {"name": "phi-4"}}
    labels = {"matchLabels": SORTS[0].labels}
    resource = {"labelSelector": labels, "instanceType": ""}
    of = {"apiVersion": "kaito.sh/v1beta1", "metadata": {"name": "a.b", "namespace": NAMESPACE}}
    template = {"resource": {"instanceType": ""}, "inference": inference}
    spec = {"replicas": 1, "labelSelector": labels, "template": template}
    return (
        {**of, "kind": "Workspace", "resource": resource, "inference": inference},
        {**of, "kind": "InferenceSet", "spec": spec},
    )


def _accepts(api: Cluster, body: Body) -> bool:
    try:
        api.create(body, dry_run=True)
    except ClusterError:
        return False
    return True


def _denies(api: Cluster, body: Body) -> bool:
    return bool(_denial(api, body))


def _denial(api: Cluster, body: Body) -> str:
    """Return what the webhook says, or an empty string before it answers."""
    try:
        api.create(body, dry_run=True)
    except ClusterError as error:
        said = str(error)
        return said if "denied the request" in said else ""
    return ""


def _installation() -> Iterator[Body]:
    """Return what KAITO's chart installs, as far as its program reads it.

    The Service is another name of localhost: the API server calls that at the webhook's port.
    """
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _SYSTEM}}
    inside = {"namespace": _SYSTEM}
    yield {"apiVersion": "v1", "kind": "Secret",
           "metadata": {**inside, "name": "workspace-webhook-cert"}}  # fmt: skip
    yield {"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": {**inside, "name": "inference-params-template"},
           "data": {"inference_config.yaml": "vllm:\n  cpu-offload-gb: 0\n"}}  # fmt: skip
    yield {"apiVersion": "v1", "kind": "Service", "metadata": {**inside, "name": _SYSTEM},
           "spec": {"type": "ExternalName", "externalName": "localhost"}}  # fmt: skip
    yield {"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": {"namespace": NAMESPACE, "name": _CONFIG},
           "data": {"inference_config.yaml": "vllm: {}\n"}}  # fmt: skip
    for name in _WEBHOOKS:
        yield _configuration(f"validation.{name}.kaito.sh")


def _configuration(name: str) -> Body:
    """Return a configuration into which the program writes its rules and certificate."""
    service = {"name": _SYSTEM, "namespace": _SYSTEM, "port": _PORT}
    webhook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 30,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
