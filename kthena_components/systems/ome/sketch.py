"""The engines of OME's InferenceService for `convert`.

Source: sgl-project/ome v0.1.5 pkg/apis/ome/v1beta1/inference_service.go.
"""

from collections.abc import Iterator
from typing import Any

from kthena_components.core.objects.engine_sketch import Sketch
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.values.read import mapping, name_of, sequence
from kthena_components.systems.ome.view import RUNNER, Component, Components, Node, nodes_of

_POD = frozenset(
    {
        *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "hostAliases"),
        *("hostIPC", "hostNetwork", "imagePullSecrets", "initContainers", "nodeSelector"),
        *("priorityClassName", "runtimeClassName", "schedulerName", "securityContext"),
        *("serviceAccountName", "shareProcessNamespace", "terminationGracePeriodSeconds"),
        *("tolerations", "topologySpreadConstraints", "volumes"),
    }
)
"""Fields of a pod that OME has beside its own."""


def sketch(view: Components) -> Sketch:
    """Return the engine and the decoder of an InferenceService."""
    found, name = view.object, name_of(view.object.body)
    beside = "OME makes it; --set expose.port=80 writes one"
    return Sketch(
        sets=tuple(pods for part in view.parts for pods in _pods(found, part)),
        beside={f"Service/{name}": beside},
    )


def _pods(found: Object, part: Component) -> Iterator[PodSet]:
    for node in nodes_of(part):

        def place(path: str, node: Node = node) -> str:
            return f"{node.path}.{_inner(path)}"

        yield pod_set(found, node.path, _template(part, node), part.replicas, written=place)


def _template(part: Component, node: Node) -> dict[str, Any]:
    own = {key: item for key, item in node.fields.items() if key in _POD}
    containers = [*([node.runner] if node.runner else []), *sequence(node.others)]
    metadata = {key: mapping(part.fields.get(key)) for key in ("labels", "annotations")}
    return {"metadata": metadata, "spec": {**own, "containers": containers}}


def _inner(path: str) -> str:
    """Map a path in the template to one below the node."""
    own = path.removeprefix("spec.")
    return own.replace("containers[0]", RUNNER, 1) if own.startswith("containers[0]") else own
