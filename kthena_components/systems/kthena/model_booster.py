"""Reads Kthena's ModelBooster: its workers, with the command lines that Kthena generates.

`facts` is for the rules, and `sketch` for `convert`.

Source: volcano-sh/kthena pkg/model-booster-controller/convert/model_serving.go (buildCommands,
buildCacheVolume, GetCachePath, buildEngineEnvVars), model_server.go, templates/vllm.yaml and
templates/vllm-pd.yaml.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.container import SharedMemory
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, relocated
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.values.read import count_or_unknown, mapping, name_of, sequence
from kthena_components.core.values.unknown import UNKNOWN_WORD, MaybeInt, Unknown, is_unresolved
from kthena_components.core.values.values_in_text import go_text
from kthena_components.systems.kthena.view import SKIPS_INSTALL, TRUE, Backend, Booster, Worker

_SCRIPT = "examples/online_serving/multi-node-serving.sh"
_SERVER = ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/model")
_MODEL_HUB = "hf://"
_VOLCANO = (None, "", "volcano")
_MADE = "spec.containers[0]"
"""Path of the container in the pod that is read."""
_ENV, _WORDS = f"{_MADE}.env", (f"{_MADE}.command", f"{_MADE}.args")


def facts(view: Booster) -> ServingFacts:
    """Read the facts of a ModelBooster."""
    asked = [backend.fields.get("schedulerName") for backend in view.backends]
    return ServingFacts(
        path=view.object.at("spec"),
        name=name_of(view.object.body),
        engines=tuple(engine for b in view.backends for engine in _engines(b, view.object)),
        copies=_copies(view),
        gang_expected=all(name in _VOLCANO or is_unresolved(name) for name in asked),
    )


def _copies(view: Booster) -> MaybeInt:
    """Count the groups that have all workers: of the only backend, up to 0.4 the least of them."""
    if len(view.backends) != 1:
        return 1
    fields = view.backends[0].fields
    name = "replicas" if fields.get("replicas") is not None else "minReplicas"
    return count_or_unknown(fields.get(name), name, 1)


def _engines(backend: Backend, found: Object) -> Iterator[EngineFacts]:
    """Describe the engines of a vLLM backend; disaggregated workers have one pod each."""
    plain = backend.kind == "vLLM"
    if not plain and backend.kind != "vLLMDisaggregated":
        return
    for worker in backend.workers:
        at, name = found.at(worker.path), worker.fields.get("type", "server")
        given = count_or_unknown(worker.fields.get("pods"), "pods", 1)
        pods: MaybeInt = (given or 1) if plain else 1
        yield EngineFacts(
            path=at,
            name=name if isinstance(name, str) and not is_unresolved(name) else "?",
            pods=pods,
            replicas=count_or_unknown(worker.fields.get("replicas"), "replicas", 1),
            entry=_pod(backend, worker, found, _command(backend, worker, pods)),
            worker=None if pods == 1 else _pod(backend, worker, found, _join_command()),
        )


def _pod(backend: Backend, worker: Worker, found: Object, command: dict[str, Any]) -> PodFacts:
    """Read the pod that Kthena creates for a worker.

    Args:
        found: Its ModelBooster.
        command: The fields of the container that start it.
    """
    at, memory = found.at(worker.path), backend.kind == "vLLM"
    container = {
        "name": "engine",
        "image": worker.fields.get("image"),
        "resources": worker.fields.get("resources"),
        "env": backend.fields.get("env"),
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}] if memory else [],  # noqa: S108 - NCCL's memory
        **command,
    }
    volumes = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}] if memory else []
    pod = read_pod(
        {"spec": {"containers": [container], "volumes": volumes}},
        "",
        context=found.context,
        gpus_path=f"{at}.resources",
        command_path=f"{at}.config",
    )

    def place(path: str) -> str:
        if path.startswith(_ENV):
            return path.replace(_MADE, found.at(backend.path), 1)
        return f"{at}.config" if path.startswith(_WORDS) else path.replace(_MADE, at, 1)

    pod = relocated(pod, place)
    if pod.own is not None and not memory:
        pod = replace(pod, own=replace(pod.own, shm=SharedMemory.FIXED))
    return fill_requests(pod)


def _command(backend: Backend, worker: Worker, pods: MaybeInt) -> dict[str, Any]:
    """Write the words that Kthena makes of a worker: over pods, a line of bash that starts Ray."""
    uri = backend.fields.get("modelURI")
    model = uri.removeprefix(_MODEL_HUB) if isinstance(uri, str) and uri else _SERVER[-1]
    model = UNKNOWN_WORD if is_unresolved(uri) else model
    words = [*_SERVER[:-1], model, *_flags(worker.fields.get("config"))]
    if isinstance(pods, int) and pods > 1:
        # Kthena joins the words with blanks, without quotes, and passes the line to bash.
        words += ["--distributed_executor_backend", "ray"]
        line = f"{_SCRIPT} leader --ray_cluster_size={pods} && {' '.join(words)}"
        return {"command": ["bash", "-c", line]}
    if not isinstance(pods, int):
        words += ["--distributed_executor_backend", UNKNOWN_WORD]
    return {"command": words}


def _join_command() -> dict[str, Any]:
    return {"command": ["bash", "-c", f"{_SCRIPT} worker --ray_address=$(ENTRY_ADDRESS)"]}


def _flags(config: object) -> list[str]:
    """Write a worker's config as flags: sorted, `_` as `-`, an empty string as a bare flag."""
    if is_unresolved(config):
        return [UNKNOWN_WORD, UNKNOWN_WORD]
    words: list[str] = []
    for key, value in sorted((str(k), v) for k, v in mapping(config).items()):
        words.append(f"--{key.replace('_', '-')}")
        text = UNKNOWN_WORD if isinstance(value, Unknown) else go_text(value)
        if isinstance(value, str | int | float | bool) and text:
            words.append(text)
    return words


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
    """Compose the pod of a worker from fields of the worker and of its backend."""
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
