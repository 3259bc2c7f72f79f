"""The engine of a KubeAI Model for `convert`: one pod for each replica.

Source: substratusai/kubeai v0.21 internal/modelcontroller/engine_vllm.go, model_source.go.
"""

from kthena_components.core.objects.engine_sketch import Sketch
from kthena_components.core.objects.object import pod_set
from kthena_components.core.values.read import name_of, pairs, sequence
from kthena_components.systems.kubeai.view import Model

_NO_IMAGE = "KubeAI's configuration chooses it by the engine and the profile"
_HUB = "hf://"


def sketch(view: Model) -> Sketch:
    """Return the engine of a Model."""
    fields, url = view.fields, view.fields.get("url")
    container = {
        "name": "server",
        "image": fields.get("image"),
        "env": [{"name": str(key), "value": item} for key, item in pairs(fields.get("env"))],
        "envFrom": [*sequence(fields.get("envFrom"))],
    }
    made = {key: item for key, item in container.items() if item not in (None, [])}
    unsaid = {} if fields.get("image") else {"engine.image": _NO_IMAGE}
    if not (isinstance(url, str) and url.startswith(_HUB)):
        unsaid["engine.model"] = f"KubeAI loads {url} into the pod"
    name = name_of(view.object.body)
    return Sketch(
        sets=(pod_set(view.object, "spec", {"spec": {"containers": [made]}}, view.replicas),),
        unsaid={"spec": unsaid},
        beside={f"model/{name}": "KubeAI's proxy serves it; --set expose.port=80 writes a Service"},
    )
