"""Where to write a field that has another name here, or another place.

Users write the names of flags (`tp`), of Kubernetes (`node_selector`) and of engines
(`max_model_len`). A name that is spelt alike would mislead: `gpu` resembles `cpu`.
"""

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import TITLES, Dialect
from kthena_components.core.findings import join_path, path_of
from kthena_components.core.schema.pod import shape_of
from kthena_components.core.spec.launch import ENGINE_CONTAINER
from kthena_components.core.spec.serving_spec import GroupSpec, RoleSpec
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
    **dict.fromkeys(("version", "imagetag", "tag"), "engine.image"),
    **dict.fromkeys(("args", "engineargs", "vllmargs"), "engine.extra_args"),
    **dict.fromkeys(("shmsize", "sharedmemory"), "resources.shm"),
    "terminationgraceperiodseconds": "drain_seconds",
}
"""Names, without dashes, underscores and capitals, and the field of a role that is meant."""
_AMOUNTS = frozenset({"limits", "requests"})
_PODS = frozenset({"nnodes", "nodes", "numnodes", "pods", "numpods", "podcount", "podsperengine"})
_OF_SERVINGS: Mapping[str, str] = {
    "priorityclassname": "priority_class",
    **dict.fromkeys(("groups", "numgroups", "groupcount"), "replicas"),
    "service": "expose",
}
_COUNT = regex(r"[1-9][0-9]{0,5}")
_SERVICE = "expose"
"""The field whose unknown fields are those of a Service, which have no other place here."""
_MOST = 2
"""Most places that a remedy names."""


def elsewhere(
    model: type[BaseModel], location: Location, value: object, data: object
) -> str | None:
    """Say what to write instead of an unknown field; None if no other place is known.

    Args:
        model: The model of the whole input.
        location: Keys and indices of the field.
        value: The value of the field.
        data: The whole input.
    """
    name = str(location[-1])
    if issubclass(model, GroupSpec):
        if location[0] == _SERVICE:
            return None
        role, group = (*location[:2],), True
        if len(location) <= len(role) or role[0] != "roles":
            role = ("roles", 0) if len(sequence(mapping(data).get("roles"))) == 1 else ()
        here = path_of(role) if role else "roles[]"
    elif issubclass(model, RoleSpec):
        role, here, group = (), "", False
    else:
        is_type = _plain(name) in {"gpu", *_TYPES} and not _is_number(value)
        if is_type and _PRODUCT in model.model_fields:
            return _write([join_path(path_of(location[:-1]), _PRODUCT)])
        return _write(_same_name(model, name, location, ""))
    stated: Any = data
    for part in role:
        stated = part_of(stated, part)
    if group and _plain(name) in _OF_SERVINGS:
        return _write([_OF_SERVINGS[_plain(name)]])
    return (
        _of_role(_plain(name), here, value, stated)
        or _write(_same_name(model, name, location, here))
        or _of_pod(name, here, stated)
        or _of_engine(name, here, stated)
    )


def _of_role(plain: str, role: str, value: object, stated: Any) -> str | None:
    """Find the field of a role that has another name here."""
    alias = _OF_ROLES.get(plain)
    if alias == _TYPE or (alias == _GPUS and not _is_number(value)):
        select = f"write the GPU's type into {join_path(role, 'resources.gpu')}"
        if mapping(stated).get("engine") is None:
            select = f"select the GPU's type with {_pod(role, stated)}.nodeSelector"
        return f"{select}, and write {join_path(role, _GPUS)} for the number"
    if plain in _AMOUNTS:
        return f"write cpu, memory and gpus_per_pod in {join_path(role, 'resources')}"
    if plain in _PODS:
        at = join_path(role, "worker_replicas")
        workers = f" {int(str(value)) - 1}," if _COUNT.fullmatch(str(value)) else ""
        return f"write {at}:{workers} the pods of an engine, less the first"
    return None if alias is None else _write([join_path(role, alias)])


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
    for flag in (f"--{name.replace('_', '-')}", f"--{name}"):
        option = dialect.options.get(flag)
        if option is not None and not option.counted:
            return flag
    return None


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and str(value).isdecimal()


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()
