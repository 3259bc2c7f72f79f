"""What a container is given: its command, variables, and files of ConfigMaps.

Whatever is not known stays so, with the reason. A Secret is never read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import Files, Hidden, image_entrypoint
from kthena_components.core.facts.context import ConfigMap, Context
from kthena_components.core.facts.files import MissingKey, PodVolumes, read_files, why_missing
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import (
    UNKNOWN_WORD,
    MaybeText,
    Unknown,
    Varying,
    is_unresolved,
)

_PLACES = frozenset({naming.ENTRY_ADDRESS, naming.WORKER_INDEX})
"""Variables that differ from pod to pod: facts are about all pods of a template."""

_OF_EACH_POD = frozenset(
    {
        *("metadata.name", "metadata.uid", "spec.nodeName", "status.hostIP", "status.podIP"),
        "metadata.labels['statefulset.kubernetes.io/pod-name']",
    }
)

_VARIABLE = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")

_MOST = 100
"""Sources of variables that are read in one container."""


@dataclass(slots=True)
class Inputs:
    """What one container is given."""

    env: dict[str, MaybeText] = field(default_factory=dict)
    """Variables in the order in which Kubernetes sets them, with `$(NAME)` not yet expanded."""
    hidden: Hidden = ()
    """Where further variables may come from."""
    files: Files = ()
    missing: list[MissingKey] = field(default_factory=list)

    def set(self, name: str, value: MaybeText) -> None:
        """Set a variable; one that was there before is set anew, behind the others."""
        if name not in _PLACES:
            self.env.pop(name, None)
            self.env[name] = value

    def hide(self, prefix: str, source: str) -> None:
        """Note that something may set, or have set anew, variables that begin with a prefix."""
        for name in [name for name in self.env if name.startswith(prefix)]:
            self.set(name, Unknown(f"{name} may come from {source}"))
        self.hidden = (*self.hidden, (prefix, source))

    def miss(self, path: str, found: ConfigMap, key: object) -> None:
        """Note a key that is not there, so that the container does not start."""
        if isinstance(key, str) and not is_unresolved(key):
            self.missing.append(MissingKey(path=path, because=why_missing(found, key)))


def read_inputs(
    container: Mapping[str, Any], pod: PodVolumes, path: str, injected: Mapping[str, str]
) -> Inputs:
    """Read what a container is given, whatever is in its fields.

    envFrom comes first, a later source over an earlier one, and env over both. Only the values in
    env are expanded, each with the variables before it.

    Args:
        container: The container.
        pod: What the containers of its pod share.
        path: Where the container stands.
        injected: Variables that a controller adds, seen by all.

    Source: kubernetes pkg/kubelet/kubelet_pods.go makeEnvironmentVariables.
    """
    context, given = pod.context, Inputs()
    for name, value in injected.items():
        given.env[name] = value
    sources, items = sequence(container.get("envFrom")), sequence(container.get("env"))
    for source in sources[:_MOST]:
        _env_from(given, source, context)
    if len(sources) > _MOST:
        given.hide("", f"envFrom, of which {_MOST} sources are read")
    if is_unresolved(container.get("envFrom")):
        given.hide("", "envFrom, which is not known yet")
    if is_unresolved(container.get("env")):
        given.hide("", "env, which is not known yet")
    late = [
        i
        for i, item in enumerate(items)
        if is_unresolved(item) or is_unresolved(mapping(item).get("name"))
    ]
    for index, item in enumerate(items):
        if index in late[-1:]:
            given.hide("", "env, a part of which is not known yet")
        _env(given, mapping(item), context, f"{path}.env[{index}]")
    given.env = {**injected, **{k: v for k, v in given.env.items() if k not in injected}}
    if container.get("volumeMounts"):
        given.files, missing = read_files(container, pod, path)
        given.missing += missing
    return given


def _env_from(given: Inputs, source: object, context: Context) -> None:
    """Take in all keys of a ConfigMap; what cannot be read hides the variables it may set."""
    reference, prefix = mapping(source).get("configMapRef"), mapping(source).get("prefix")
    start = prefix if isinstance(prefix, str) and not is_unresolved(prefix) else ""
    found = context.find(reference) if isinstance(reference, Mapping) else None
    if isinstance(found, ConfigMap) and found.gap is None and not is_unresolved(prefix):
        for key in found.data:
            if isinstance(key, str) and _VARIABLE.fullmatch(start + key):
                given.set(start + key, _literal(found.text(key)))
        return
    given.hide(start, f"envFrom, where {_why(source, found)}")


def _why(source: object, found: ConfigMap | Unknown | None) -> str:
    """Say why a source of variables is not known."""
    secret = mapping(mapping(source).get("secretRef")).get("name")
    if isinstance(secret, str) and not is_unresolved(secret):
        return f"Secret '{secret[:63]}' is not read"
    if isinstance(found, ConfigMap):
        return f"{found.title} is not known yet"
    return found.because if found else "a source is not known yet"


def _env(given: Inputs, item: Mapping[str, Any], context: Context, path: str) -> None:
    name, value = item.get("name"), item.get("value")
    if not isinstance(name, str) or is_unresolved(name):
        return
    reference = mapping(item.get("valueFrom")).get("configMapKeyRef")
    if isinstance(value, str) and (value or not isinstance(reference, Mapping)):
        late = Unknown(f"the value of {name} is not in the manifest")
        given.set(name, late if is_unresolved(value) else value)
    elif not isinstance(reference, Mapping):
        differs = _differs(mapping(item.get("valueFrom")))
        why = f"the value of {name} is not in the manifest"
        given.set(name, Varying(why) if differs else Unknown(why))
    else:
        key, found = reference.get("key"), context.find(reference)
        if isinstance(found, Unknown):
            given.set(name, Unknown(f"the value of {name} is not in the manifest: {found.because}"))
        elif not isinstance(key, str) or is_unresolved(key):
            given.set(name, Unknown(f"the key of {name} in {found.title} is not known yet"))
        else:
            given.set(name, _literal(found.text(key)))
            if not found.has(key) and reference.get("optional") is not True:
                given.miss(f"{path}.valueFrom.configMapKeyRef.key", found, key)


def _differs(source: Mapping[str, Any]) -> bool:
    """Tell whether a field of the pod is another one in each pod of a template."""
    path = mapping(source.get("fieldRef")).get("fieldPath")
    return isinstance(path, str) and (path in _OF_EACH_POD or "index" in path)


def _literal(text: MaybeText) -> MaybeText:
    """Write a text so that Kubernetes' expansion, which it does not get, leaves it as it is."""
    return text.replace("$", "$$") if isinstance(text, str) else text


def read_argv(container: Mapping[str, Any]) -> list[str]:
    """Give a container's command and args in one list, or what its image starts."""
    command = _words(container.get("command")) or [
        *image_entrypoint(str(container.get("image", "")))
    ]
    return [*command, *_words(container.get("args"))]


def _words(value: object) -> list[str]:
    if is_unresolved(value):
        # The whole list is not known: one word may be the model, another one any flag.
        return [UNKNOWN_WORD, UNKNOWN_WORD]
    return [text_of(item) for item in sequence(value) if isinstance(item, str | int | float)]
