"""Where to write a field that has another name here, or another place.

Users write the names of flags (`tp`), of Kubernetes (`node_selector`) and of engines
(`max_model_len`). A name that is spelt alike would mislead: `gpu` resembles `cpu`.
"""

import typing
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import TITLES, Dialect
from kthena_components.core.findings import join_path, path_of
from kthena_components.core.schema.pod import shape_of
from kthena_components.core.spec.serving_spec import ENGINE_CONTAINER, GroupSpec, RoleSpec
from kthena_components.core.values.images import read_image
from kthena_components.core.values.read import inside, mapping, sequence
from kthena_components.core.values.regex import regex

Location = Sequence[str | int]

_SIZES = "engine.parallelism"
_GPUS = "resources.gpus_per_pod"
_TYPE = "gpu type"
_TYPES = ("accelerator", "gputype", "gpumodel", "gpuproduct")
_PRODUCT = "product"
"""The field of an inventory that names the GPU of its nodes."""
_OF_ROLES: Mapping[str, str] = {
    **dict.fromkeys(("tp", "tpsize", "tensorparallel", "tensorparallelsize"), f"{_SIZES}.tensor"),
    **dict.fromkeys(
        ("pp", "ppsize", "pipelineparallel", "pipelineparallelsize"), f"{_SIZES}.pipeline"
    ),
    **dict.fromkeys(("dp", "dpsize", "dataparallel", "dataparallelsize"), f"{_SIZES}.data"),
    **dict.fromkeys(("ep", "expertparallel", "enableexpertparallel"), f"{_SIZES}.expert"),
    **dict.fromkeys(("gpu", "gpus", "gpucount", "numgpus", "nvidia.com/gpu", "nvidia/gpu"), _GPUS),
    **dict.fromkeys(_TYPES, _TYPE),
    **dict.fromkeys(("args", "engineargs", "vllmargs"), "engine.extra_args"),
    **dict.fromkeys(("shmsize", "sharedmemory"), "resources.shm"),
    **dict.fromkeys(("pvc", "pvcname", "claimname", "persistentvolumeclaim"), "cache.claim"),
    "terminationgraceperiodseconds": "drain_seconds",
    **dict.fromkeys(("worker", "numworkers", "workercount"), "worker_replicas"),
}
"""Names, without dashes, underscores and capitals, and the field of a role that is meant."""
_TAGS = frozenset({"version", "imagetag", "imageversion", "engineversion", "tag"})
_RELEASE = regex(r"(v?)([0-9]+\.[0-9]+)(\.[0-9]+[a-z0-9.]*)?")
_TOKENS = frozenset(
    f"{owner}{what}"
    for owner in ("hf", "huggingface", "huggingfacehub")
    for what in ("token", "tokensecret", "secret", "tokensecretname")
)
"""Names for the token of Hugging Face, which no command line may have: everyone can read those."""
_HUB = "hugging_face_token"
_WITHIN: Mapping[tuple[str | int, ...], str] = {
    **dict.fromkeys([(_HUB, "secret"), (_HUB, "secretname")], f"{_HUB}.name"),
    ("network", "host"): "overlay.spec.hostNetwork",
}
"""Names that mean another field only within a field of a role, and that field."""
_CONTEXTS = frozenset({"context", "contextlength", "contextlen", "contextwindow", "maxcontext"})
_CONTEXT_OPTIONS: Mapping[str, str] = {
    "vllm": "--max-model-len",
    "sglang": "--context-length",
    "trtllm": "--max_seq_len",
}
_ADAPTERS = frozenset({"adapters", "lora", "loras", "loraadapters", "loramodules", "lorapaths"})
_ADAPTER_OPTIONS: Mapping[str, str] = {"vllm": "--lora-modules", "sglang": "--lora-paths"}
_AMOUNTS = frozenset({"limits", "requests"})
_PODS = frozenset({"nnodes", "nodes", "numnodes", "pods", "numpods", "podcount", "podsperengine"})
_OF_SERVINGS: Mapping[str, str] = {
    "priorityclassname": "priority_class",
    **dict.fromkeys(("groups", "numgroups", "groupcount", "instances", "copies"), "replicas"),
    "service": "expose",
    "gang": "gang_policy",
    "timeout": "ready_timeout_seconds",
}
_OUTSIDE = frozenset(
    {"ingress", "ingresses", "ingressclass", "ingressclassname", "gateway", "httproute", "domain"}
    | {"host", "hosts", "hostname", "loadbalancer", "loadbalancerip", "loadbalancerclass"}
    | {"servicetype", "nodeport", "externaltrafficpolicy", "externalips", "public"}
)
"""Names for the way to a serving from outside the cluster."""
_OF_SERVICES = frozenset({"type", "annotations"})
_BOUNDS = frozenset(
    {"autoscaling", "minreplicas", "maxreplicas", "minscale", "maxscale", "scaling", "hpa"}
)
_CLUSTERS = frozenset({"cluster", "kubeconfig", "kubecontext"})
_V_TAGS = frozenset({"vllm", "sglang"})
"""Engines whose images have tags such as v0.11.0: vllm/vllm-openai, lmsysorg/sglang."""
_NUMBERS = frozenset({"count", "number", "quantity", "replicas", "size"})
_COUNT = regex(r"[1-9][0-9]{0,5}")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_SERVICE = "expose"
"""The field whose unknown fields are those of a Service."""
_MOST = 2
"""Most places that a remedy names."""


def elsewhere(
    model: type[BaseModel], location: Location, value: object, data: object, known: Container[str]
) -> str | None:
    """Say what to write instead of an unknown field; None if no other place is known.

    Args:
        model: The model of the whole input.
        location: Keys and indices of the field.
        data: The whole input.
        known: The fields that there are at this place.
    """
    name = str(location[-1])
    if issubclass(model, GroupSpec):
        if location[0] == _SERVICE or len(location) == 1 or _plain(name) in _BOUNDS:
            found = _of_serving(_plain(name), location, value, data)
            if found or location[0] == _SERVICE:
                return found
        role, group = (*location[:2],), True
        if len(location) <= len(role) or role[0] != "roles":
            role = ("roles", 0) if len(sequence(mapping(data).get("roles"))) == 1 else ()
        here = path_of(role) if role else "roles[]"
    elif issubclass(model, RoleSpec):
        role, here, group = (), "", False
    else:
        return _of_cluster(model, location, value, known)
    stated: Any = data
    for part in role:
        stated = part_of(stated, part)
    if group and _plain(name) in _OF_SERVINGS:
        return _write([_OF_SERVINGS[_plain(name)]])
    if group and name == "port":
        engine = join_path(here, "engine.port")
        return f"write {_SERVICE}.port for the Service, or {engine} for the engine"
    return (
        _write(_within(location, here))
        or _of_role(_plain(name), here, value, stated)
        or _write(_same_name(model, name, location, here))
        or _of_pod(name, here, stated)
        or _of_engine(name, here, stated)
    )


def _within(location: Location, role: str) -> list[str]:
    found = _WITHIN.get((*location[-2:-1], _plain(str(location[-1]))))
    return [join_path(role, found)] if found else []


def _of_cluster(
    model: type[BaseModel], location: Location, value: object, known: Container[str]
) -> str | None:
    """Find the field of an inventory or of the objects of a cluster."""
    name = str(location[-1])
    is_type = _plain(name) in {"gpu", *_TYPES} and not _is_number(value)
    if is_type and _PRODUCT in model.model_fields:
        return _write([join_path(path_of(location[:-1]), _PRODUCT)])
    if _plain(name) in _NUMBERS and "names" in known:
        return "write names: [NAME, NAME] instead, one name for each"
    return _write(_same_name(model, name, location, ""))


def _of_serving(plain: str, location: Location, value: object, data: object) -> str | None:
    """Find what a serving cannot state, because another object or the program states it."""
    if plain == "service" and {_plain(str(key)) for key in mapping(value)} & _OF_SERVICES:
        plain = "servicetype"
    if plain in _OUTSIDE or (location[0] == _SERVICE and plain in _OF_SERVICES):
        no_service = mapping(data).get(_SERVICE) is None
        made = f", write {_SERVICE}: {{}} for a Service" if no_service else ""
        return (
            f"remove it{made}, and put an Ingress, a Gateway or a load balancer of your own in "
            f"front of the Service of {_SERVICE}, as in docs/how-to/from-outside.md"
        )
    if plain in _BOUNDS:
        return (
            "write autoscaled: true at the top instead, with a backend that takes it "
            "(docs/backends.md), and the bounds into a HorizontalPodAutoscaler"
        )
    if plain == "metadata" and len(location) == 1:
        return "write name, namespace and labels at the top instead"
    if plain in _CLUSTERS and len(location) == 1:
        return (
            "remove it: the cluster is kubernetes:kubeconfig or kubernetes:context of the stack, "
            "or the provider in the options of the component"
        )
    return None


def _tag(role: str, value: object, stated: Any) -> str:
    """Write a version as the tag of an image."""
    engine = mapping(inside(stated, "engine"))
    at, kind, stated_image = (
        join_path(role, "engine.image"),
        engine.get("kind"),
        engine.get("image"),
    )
    image = read_image(stated_image) if isinstance(stated_image, str) else None
    found = _RELEASE.fullmatch(str(value)) if isinstance(value, str) else None
    if found is None or image is None or kind not in _V_TAGS or image.digest is not None:
        return f"write the version as the tag of {at} instead"
    name = str(stated_image).removesuffix(f":{image.tag}") if image.tag else stated_image
    return f"write {at}: {name}:v{found[2]}{found[3] or '.0'} instead"


def _of_role(plain: str, role: str, value: object, stated: Any) -> str | None:
    """Find the field of a role that has another name here."""
    alias = _OF_ROLES.get(plain)
    if alias == _TYPE or (alias == _GPUS and not _is_number(value)):
        select = f"write the GPU's type into {join_path(role, 'resources.gpu')}"
        if mapping(stated).get("engine") is None:
            select = f"select the GPU's type with {_pod(role, stated)}.nodeSelector"
        return f"{select}, and write {join_path(role, _GPUS)} for the number"
    if alias is not None:
        return _write([join_path(role, alias)])
    if plain in _AMOUNTS:
        return f"write cpu, memory and gpus_per_pod in {join_path(role, 'resources')}"
    if plain in _PODS:
        at = join_path(role, "worker_replicas")
        number = str(value)
        workers = f" {int(number) - 1}," if _COUNT.fullmatch(number) else ""
        return f"write {at}:{workers} the pods of an engine, less the first"
    return _of_role_engine(plain, role, value, stated)


def _of_role_engine(plain: str, role: str, value: object, stated: Any) -> str | None:
    """Find what decides the version, the token or the context of an engine."""
    if plain in _TAGS:
        return _tag(role, value, stated)
    if plain in _TOKENS:
        at = join_path(role, _HUB)
        return f"write {at}: {{name: NAME}}, the Secret that holds the token in its key HF_TOKEN"
    kind = str(mapping(inside(stated, "engine")).get("kind"))
    named = ((_CONTEXTS, _CONTEXT_OPTIONS), (_ADAPTERS, _ADAPTER_OPTIONS))
    for names, options in named:
        if plain in names and kind in options:
            return f"write {options[kind]} in {join_path(role, 'engine.extra_args')}"
    return None


def _write(paths: Sequence[str]) -> str | None:
    shown = (path if "." in path else f"{path} at the top" for path in paths)
    return f"write {' or '.join(shown)} instead" if paths else None


def _same_name(model: type[BaseModel], name: str, location: Location, role: str) -> list[str]:
    """Return the paths of the fields with this name; none if there are too many."""
    found = [path.replace("roles[]", role, 1) for path in _paths(model, "") if _last(path) == name]
    found = [path for path in dict.fromkeys(found) if path != path_of(location)]
    return found if len(found) <= _MOST else []


def _paths(model: type[BaseModel], at: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = join_path(at, field.alias or name)
        yield path
        for nested, many in _models(field.annotation):
            yield from _paths(nested, f"{path}[]" if many else path)


def _models(annotation: Any, *, many: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """Yield the models in an annotation, and whether a list has them. Maps have keys of users."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
    origin = typing.get_origin(annotation)
    for part in () if origin in {dict, Mapping} else typing.get_args(annotation):
        yield from _models(part, many=many or origin is list)


def _last(path: str) -> str:
    """Return the last field of a path."""
    return path.rpartition(".")[2]


def part_of(holder: Any, part: str | int) -> Any:
    """Return what a field or an index of the input holds; None if it has none."""
    if isinstance(part, int):
        items = sequence(holder)
        return items[part] if part < len(items) else None
    return mapping(holder).get(part)


def _pod(role: str, stated: Any) -> str:
    """Return the path of the pod's fields: in the overlay of an engine, or in its own template."""
    own = mapping(stated).get("engine") is None and mapping(stated).get("entry_template")
    return join_path(role, "entry_template.spec" if own else "overlay.spec")


def _of_pod(name: str, role: str, stated: Any) -> str | None:
    """Find the field of a pod or of a container that is meant."""
    if _plain(name) == "annotations":
        return _write([f"{_pod(role, stated).removesuffix('.spec')}.metadata.annotations"])
    pod = {_plain(field): field for field in shape_of("PodSpec").fields}
    pod["serviceaccount"] = pod["serviceaccountname"]  # the other is its deprecated alias
    if _plain(name) in pod:
        return _write([f"{_pod(role, stated)}.{pod[_plain(name)]}"])
    container = {_plain(field): field for field in shape_of("Container").fields}
    if _plain(name) in container:
        at = _pod(role, stated)
        which = (
            f"of the container '{ENGINE_CONTAINER}'"
            if ".overlay." in f".{at}"
            else "of a container"
        )
        return f"write {container[_plain(name)]} {which} in {at}.containers"
    return None


def _of_engine(name: str, role: str, stated: Any) -> str | None:
    """Find the option of the engine that is meant, if the package does not set it itself."""
    engine = mapping(inside(stated, "engine"))
    kind = engine.get("kind")
    if not isinstance(kind, str) or kind not in TITLES:
        return None
    image = engine.get("image")
    dialect = dialect_of(release_for(kind, read_image(image) if isinstance(image, str) else None))
    flag = _flag(name, dialect)
    return None if flag is None else f"write {flag} in {join_path(role, 'engine.extra_args')}"


def _flag(name: str, dialect: Dialect) -> str | None:
    kebab = _HUMP.sub("-", name.replace("_", "-")).casefold()
    for flag in (f"--{kebab}", f"--{name}"):
        option = dialect.options.get(flag)
        if option is not None and not option.counted:
            return flag
    return None


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and str(value).isdecimal()


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()
