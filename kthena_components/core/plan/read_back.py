"""Reads arguments back from objects: the inverses of what emitters add to pod templates."""

from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.templates import Template
from kthena_components.core.values.read import DEFAULT_NAMESPACE, mapping, sequence


def stated(**args: Any) -> dict[str, Any]:
    """Return the arguments that are given: a missing field of an object is a missing argument."""
    return {name: value for name, value in args.items() if value is not None}


def filled_map(value: object, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a map with defaults for its missing fields."""
    given = dict(mapping(value))
    return {**given, **{key: item for key, item in defaults.items() if given.get(key) is None}}


def namespaced(metadata: object) -> dict[str, Any]:
    """Return an object's metadata with the namespace that it gets if it states none."""
    return filled_map(metadata, {"namespace": DEFAULT_NAMESPACE})


def described_template(template: object, scheduler: object = None) -> Template | None:
    """Return a pod template as a user would write it, None if there is none.

    Labels that select the pods are left out, metadata that no pod gets, and the serving's
    scheduler: emitters add them.
    """
    if not isinstance(template, Mapping):
        return None
    metadata = mapping(template.get("metadata"))
    own = mapping(metadata.get("labels"))
    labels = {key: value for key, value in own.items() if key not in naming.KTHENA_LABELS}
    kept = stated(labels=labels or None, annotations=metadata.get("annotations") or None)
    result = {key: value for key, value in template.items() if key != "metadata"}
    if kept:
        result = {"metadata": kept, **result}
    spec = template.get("spec")
    if isinstance(spec, Mapping) and scheduler is not None:
        result["spec"] = {
            key: value
            for key, value in spec.items()
            if not (key == "schedulerName" and value == scheduler)
        }
    return result


def without_env(template: Template, env: Iterable[Mapping[str, Any]]) -> Template:
    """Remove variables that an emitter adds to the containers of a template."""
    added, spec = list(env), template.get("spec")
    if not isinstance(spec, Mapping):
        return template
    stripped = {
        kind: [_stripped(container, added) for container in sequence(spec[kind])]
        for kind in ("initContainers", "containers")
        if isinstance(spec.get(kind), list)
    }
    return {**template, "spec": {**spec, **stripped}}


def _stripped(container: object, added: list[Mapping[str, Any]]) -> object:
    if not isinstance(container, Mapping) or not isinstance(container.get("env"), list):
        return container
    kept = [entry for entry in container["env"] if entry not in added]
    stripped = {**container, "env": kept}
    return stripped if kept else {key: stripped[key] for key in stripped if key != "env"}


SERVE = "serve"
"""Name of the role of an object that has no roles."""


def serving_and_role(metadata: Mapping[str, Any]) -> tuple[object, str]:
    """Return the names of the serving and the role: our labels, or the object's own name."""
    labels, name = mapping(metadata.get("labels")), metadata.get("name")
    serving, role = labels.get(naming.NAME), labels.get(naming.ROLE)
    ours = isinstance(role, str) and f"{serving}-{role}" == name
    return (serving, str(role)) if ours else (name, SERVE)


def split_name(name: object) -> tuple[str, str] | None:
    """Split an object's name into the serving's and the role's, which backends join."""
    serving, _, role = str(name).rpartition("-")
    fits = naming.DNS_1035.fullmatch(serving) and naming.DNS_1123_LABEL.fullmatch(role)
    return (serving, role) if fits else None


def with_split_name(body: Mapping[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """Give the serving and its role their parts of an object's name, if the name has both."""
    name = mapping(body.get("metadata")).get("name")
    split = split_name(name)
    if args.get("name") != name or split is None:
        return args
    return {**args, "name": split[0], "roles": [{**args["roles"][0], "name": split[1]}]}
