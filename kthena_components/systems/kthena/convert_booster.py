"""The engines of a ModelBooster for `convert`.

Source: volcano-sh/kthena pkg/model-booster-controller/convert/model_serving.go (buildCacheVolume,
GetCachePath, buildEngineEnvVars) and model_server.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.core.values.read import mapping, name_of, sequence
from kthena_components.systems.kthena.view import (
    SKIPS_INSTALL,
    TRUE,
    Backend,
    Booster,
    Worker,
)

_HUB = "hf://"
_POD = ("affinity", "tolerations")
_OF_BACKEND = ("schedulerName", "runtimeClassName")
_FOLDERS = {"pvc": "claim", "hostpath": "host_path"}
_PACKAGES = {"NixlConnector": "nixl", "MooncakeConnector": "mooncake-transfer-engine"}
"""What vLLM's image lacks for a connector."""
_INSTALLED = "Kthena installs it when the pods start; choose an image that has it"
_LEADER = "leader"
"""What Kthena calls the role of the only worker."""
_KEYS = "the engine gets its key HF_TOKEN, and none of the others"
_ROUTER = (
    "Kthena makes it for its router; --to kthena writes one with --set backend_options.{0}={{}}"
)


def sketch(view: Booster) -> Sketch:
    """Return the engine of each worker."""
    sets, roles, unsaid = list[PodSet](), dict[str, Any](), dict[str, dict[str, str]]()
    name = name_of(view.object.body)
    for backend in view.backends:
        for worker in backend.workers:
            number = worker.fields.get("replicas", 1)
            sets.append(pod_set(view.object, worker.path, _template(backend, worker), number))
            roles[worker.path] = {**dict(_cache(backend)), **_token(backend)}
            if len(view.backends) == 1 and worker.fields.get("type") == "server":
                roles[worker.path]["name"] = _LEADER
            unsaid[worker.path] = dict(_unsaid(backend))
    own = [f"{name}-{backend.fields.get('name')}" for backend in view.backends]
    return Sketch(
        sets=tuple(sets),
        roles=roles,
        unsaid=unsaid,
        beside={
            **{f"ModelServer/{each}": _ROUTER.format("model_server") for each in own},
            f"ModelRoute/{name}": _ROUTER.format("model_route"),
            **{package: _INSTALLED for b in view.backends for package in _installed(b)},
            **{f"Secret/{_secret(b)}": _KEYS for b in view.backends if _secret(b)},
        },
    )


def _installed(backend: Backend) -> Iterator[str]:
    """Yield what Kthena installs in the pods when they start."""
    env = [mapping(entry) for entry in sequence(backend.fields.get("env"))]
    if any(entry.get("name") == SKIPS_INSTALL and str(entry.get("value")) in TRUE for entry in env):
        return
    for worker in backend.workers:
        text = str(mapping(worker.fields.get("config")).get("kv-transfer-config"))
        yield from (package for name, package in _PACKAGES.items() if f'"{name}"' in text)


def _template(backend: Backend, worker: Worker) -> dict[str, Any]:
    fields = worker.fields
    container = {
        "name": "engine",
        "image": fields.get("image"),
        "resources": fields.get("resources"),
        "env": backend.fields.get("env"),
        "envFrom": None if _secret(backend) else backend.fields.get("envFrom"),
    }
    spec = {
        **{key: fields.get(key) for key in _POD},
        **{key: backend.fields.get(key) for key in _OF_BACKEND},
        "containers": [{key: item for key, item in container.items() if item is not None}],
    }
    return {"spec": {key: item for key, item in spec.items() if item is not None}}


def _cache(backend: Backend) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield where the pods find the model: one of a hub by its name, any other by its path."""
    uri = backend.fields.get("cacheURI")
    scheme, _, rest = uri.partition("://") if isinstance(uri, str) else ("", "", "")
    place, folder = _FOLDERS.get(scheme), rest.strip("/")
    if place is not None and folder:
        loads = {"download": True} if _is_on_hub(backend) else {"mount_path": f"/{folder}"}
        yield "cache", {place: folder if place == "claim" else f"/{folder}", **loads}


def _is_on_hub(backend: Backend) -> bool:
    uri = backend.fields.get("modelURI")
    return isinstance(uri, str) and uri.startswith(_HUB)


def _secret(backend: Backend) -> str:
    """Return the Secret whose keys the pods get, if there is one and nothing else."""
    sources = [mapping(each) for each in sequence(backend.fields.get("envFrom"))]
    if len(sources) != 1 or set(sources[0]) != {"secretRef"}:
        return ""
    reference = mapping(sources[0]["secretRef"])
    name = reference.get("name")
    return name if isinstance(name, str) and set(reference) == {"name"} else ""


def _token(backend: Backend) -> dict[str, Any]:
    secret = _secret(backend)
    return {"hugging_face_token": {"name": secret}} if secret else {}


def _unsaid(backend: Backend) -> Iterator[tuple[str, str]]:
    if not _is_on_hub(backend):
        uri = backend.fields.get("modelURI")
        yield "engine.model", f"Kthena's downloader writes {uri} into the cache"
