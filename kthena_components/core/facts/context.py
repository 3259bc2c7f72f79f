"""The context of an object: ConfigMaps, LimitRanges and other objects, and shapes of models.

Readers get one object at a time, with its context. Nothing here reads a Secret.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from kthena_components.core.facts.pod_policies_and_sharing import LimitRanges, PodPolicies, Sharing
from kthena_components.core.hardware import NO_CHOICE, GpuChoice, GpuFacts, find_gpu
from kthena_components.core.models import ModelShape, shape_from_config
from kthena_components.core.naming import name_slip_of
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.read import group_kind, inside, is_map, mapping, sequence
from kthena_components.core.values.unknown import MaybeText, Unknown, is_unresolved

if TYPE_CHECKING:
    from kthena_components.core.schema.crds import CrdTable

MODEL_CONFIG = "kthena-components/model-config"
"""Annotation of an object or a pod template with its model's config.json, as text."""
GPU = "kthena-components/gpu"
"""Annotation of a pod template with the name of its GPU."""
_LATE_DATA = Unknown("its data is not known yet")
_LONGEST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMap:
    """One ConfigMap."""

    name: str
    data: Mapping[Any, Any]
    binary: frozenset[str] = frozenset()
    """Keys of binaryData."""
    gap: Unknown | None = None
    """Why other keys may exist."""

    @property
    def title(self) -> str:
        """Title for messages."""
        return _title(self.name)

    def has(self, key: str) -> bool:
        """Return whether a key may exist."""
        return key in self.data or key in self.binary or self.gap is not None

    def text(self, key: str) -> MaybeText:
        """Return the text of a key, or why it is unknown."""
        value = self.data.get(key)
        if isinstance(value, str) and not is_unresolved(value):
            return value
        shown = key[:_LONGEST]
        if key in self.binary:
            return Unknown(f"key '{shown}' of {self.title} is binary")
        if key in self.data:
            why = "is not known yet" if is_unresolved(value) else "holds no string"
            return Unknown(f"key '{shown}' of {self.title} {why}")
        if self.gap is not None:
            return Unknown(f"key '{shown}' of {self.title} is not known: {self.gap.because}")
        return Unknown(f"{self.title} has no key '{shown}'")


@dataclass(slots=True)
class ConfigMaps:
    """The ConfigMaps of one cluster, by name and namespace."""

    _found: dict[str, dict[str, ConfigMap | Unknown]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._found)

    def add(self, body: Mapping[str, Any], *, gap: Unknown | None = None) -> None:
        """Add an object; other kinds and ConfigMaps without a name are ignored.

        Args:
            gap: Why it may have more keys than it shows.
        """
        metadata = body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        named = isinstance(name, str) and not is_unresolved(name)
        if not named or body.get("apiVersion") != "v1" or body.get("kind") != "ConfigMap":
            return
        data, binary = body.get("data"), body.get("binaryData")
        known = ConfigMap(
            name=str(name),
            data=data if isinstance(data, Mapping) else {},
            binary=frozenset(map(str, mapping(binary))),
            gap=_LATE_DATA if is_unresolved(data) or is_unresolved(binary) else gap,
        )
        spaces, space = self._found.setdefault(str(name), {}), namespace_of(body)
        other = spaces.get(space, known)
        same = other == known
        spaces[space] = known if same else Unknown(f"several {_title(name)} differ")

    def find(self, name: str, namespace: str = "") -> ConfigMap | Unknown:
        """Find a ConfigMap by its name.

        Where either side states no namespace, the deployment sets it: a single ConfigMap of that
        name matches.
        """
        spaces = self._found.get(name, {})
        exact = spaces.get(namespace)
        if exact is not None:
            return exact
        if namespace:
            spaces = {"": spaces[""]} if "" in spaces else {}
        if not spaces:
            return Unknown(f"{_title(name)} is not among the objects that are checked")
        only = next(iter(spaces.values()))
        return only if len(spaces) == 1 else Unknown(f"more than one {_title(name)} was found")

    def slip_of(self, name: str, namespace: str = "") -> str | None:
        """Return the ConfigMap whose name another one misspells, if none has that name."""
        here = {"", namespace}
        near = (own for own, spaces in self._found.items() if not namespace or here & spaces.keys())
        return None if name in self._found else name_slip_of(name, near)


def _title(name: object) -> str:
    return f"ConfigMap '{str(name)[:_LONGEST]}'"


class Definitions:
    """The CustomResourceDefinitions among the files. This one has none."""

    def find(
        self,
        of: tuple[str, str],  # noqa: ARG002 - for those that have some
        packaged: "CrdTable",  # noqa: ARG002 - for those that have some
    ) -> "tuple[CrdTable, ...]":
        """Return what the CRDs of a kind declare, each in a table of its own.

        Args:
            of: API group and kind.
            packaged: The releases of its system.
        """
        return ()


@dataclass(frozen=True, slots=True)
class Pin:
    """A release of an operator that a file installs."""

    release: str
    file: str


_Key = tuple[tuple[str, str], str]


@dataclass(slots=True)
class ReferencedObjects:
    """The objects of one cluster that others may name, found by kind, name and namespace."""

    kinds: Collection[tuple[str, str]] = ()
    """Their API groups and kinds. Others are ignored."""
    named_by: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """Kinds of the objects that refer to them, with the fields that lead to the name."""
    beyond: "ReferencedObjects | None" = None
    """Those of other files, which count if this cluster has none of the kind and name.

    Only its kinds are referred to from other files."""
    _found: dict[_Key, dict[str, Mapping[str, Any] | None]] = field(default_factory=dict)
    """By name and namespace. None: several of one name differ."""
    _named: set[tuple[tuple[str, str], object]] = field(default_factory=set)
    """The kind of each object that refers to another one, and the name."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._found or self.beyond)

    def add(self, body: Mapping[str, Any]) -> None:
        """Add an object of the kinds that has a name, or what another object refers to."""
        kind, metadata = group_kind(body), mapping(body.get("metadata"))
        if kind in self.named_by:
            named: object = body
            for step in self.named_by[kind]:
                named = inside(named, step)
            self._named.add((kind, named if isinstance(named, str) else None))
        name, space = metadata.get("name"), metadata.get("namespace")
        if kind not in self.kinds or not isinstance(name, str) or is_unresolved(name):
            return
        stated = space if isinstance(space, str) and not is_unresolved(space) else ""
        spaces = self._found.setdefault((kind, name), {})
        other = spaces.get(stated, body)
        spaces[stated] = body if other is not None and _alike(other, body) else None

    def find(self, kind: tuple[str, str], name: str, namespace: str) -> Mapping[str, Any] | None:
        """Find an object by its kind and name; None if there is none, or if several differ.

        Where either side states no namespace, the deployment sets it: a single object of that name
        matches.
        """
        spaces = self._found.get((kind, name), {})
        if not spaces and self.beyond is not None:
            return self.beyond.find(kind, name, namespace)
        if namespace in spaces:
            return spaces[namespace]
        if namespace:
            return spaces.get("")
        return next(iter(spaces.values())) if len(spaces) == 1 else None

    def is_named(self, body: Mapping[str, Any]) -> bool:
        """Return whether an object refers to this one, by its name."""
        name = mapping(body.get("metadata")).get("name")
        known = isinstance(name, str | None)
        if known and any(self.names(kind, name) for kind in self.named_by):
            return True
        beyond = self.beyond
        return beyond is not None and group_kind(body) in beyond.kinds and beyond.is_named(body)

    def names(self, kind: tuple[str, str], name: str | None) -> bool:
        """Return whether an object of a kind refers to a name."""
        return (kind, name) in self._named

    def has(self, kind: tuple[str, str], name: str) -> bool:
        """Return whether there are objects of a kind and name, in any namespace."""
        return (kind, name) in self._found


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two objects differ at most in metadata: kustomize annotates what it builds."""
    return {**one, "metadata": None} == {**other, "metadata": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Inputs of a check besides the object."""

    config_maps: ConfigMaps = field(default_factory=ConfigMaps)
    limits: LimitRanges = field(default_factory=LimitRanges)
    sharing: Sharing = field(default_factory=Sharing)
    pod_policies: PodPolicies = field(default_factory=PodPolicies)
    referenced: ReferencedObjects = field(default_factory=ReferencedObjects)
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    """Shapes by the model's name in command lines. They override the table of models."""
    gpus: GpuChoice = NO_CHOICE
    """The GPUs that the user names for pods whose manifests name none."""
    gpu_option: str = ""
    """How the user may name one. Empty: nothing is said where a GPU is missing."""
    namespace: str = ""
    """Namespace of the object; empty if it states none."""
    shape: ModelShape | Unknown | None = None
    """Shape of the model that the object states. None: it states none."""
    definitions: Definitions = field(default_factory=Definitions)
    """The CRDs among the files. They replace the newest release of a system."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the cluster's systems, by system name; a missing one means the newest."""
    pins: Mapping[str, tuple[Pin, ...]] = field(default_factory=dict)
    """What the files install of the systems whose version is not stated, by system name."""

    def find(self, reference: Mapping[str, Any]) -> ConfigMap | Unknown:
        """Find the ConfigMap that a reference names."""
        name = reference.get("name")
        if is_unresolved(name):
            return Unknown("the name of its ConfigMap is not known yet")
        if not isinstance(name, str) or not name:
            return Unknown("it names no ConfigMap")
        found = self.config_maps.find(name, self.namespace)
        if isinstance(found, Unknown) and reference.get("optional") is True:
            return Unknown(f"{found.because}, and is optional")
        return found

    def texts_in(self, volumes: object) -> list[Any]:
        """Return the strings of the ConfigMaps that a pod's volumes name."""
        if not self.config_maps:
            return []
        named = (mapping(mapping(each).get("configMap")) for each in sequence(volumes))
        found = (self.find(each) for each in named if each)
        return [
            text for each in found if isinstance(each, ConfigMap) for text in each.data.values()
        ]

    def slip_of(self, reference: Mapping[str, Any]) -> str | None:
        """Return the ConfigMap that a reference probably means, if none has the name in it."""
        name, optional = reference.get("name"), reference.get("optional")
        if not isinstance(name, str) or is_unresolved(name) or optional not in (None, False):
            return None
        return self.config_maps.slip_of(name, self.namespace)


NO_CONTEXT = Context()
"""A context without information."""


def in_object(context: Context, body: Mapping[str, Any]) -> Context:
    """Return the context of one object: its namespace, and its model's shape if it states one.

    Returns the context unchanged if nothing would be looked up.
    """
    shape = stated_shape(body.get("metadata"))
    known = context.config_maps or context.shapes or context.limits or context.referenced
    if shape is None and not known:
        return context
    return replace(context, namespace=namespace_of(body), shape=shape)


def namespace_of(body: Mapping[str, Any]) -> str:
    """Return the namespace that an object states, empty if none."""
    stated = mapping(body.get("metadata")).get("namespace")
    return stated if isinstance(stated, str) and not is_unresolved(stated) else ""


def stated_shape(metadata: object) -> ModelShape | Unknown | None:
    """Read the shape of a model from the annotations of an object or a pod template."""
    annotations = metadata.get("annotations") if is_map(metadata) else None
    text = annotations.get(MODEL_CONFIG) if is_map(annotations) else None
    if text is None:
        return None
    if is_unresolved(text):
        return Unknown(f"its annotation {MODEL_CONFIG} is not known yet")
    try:
        config = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, Mapping):
        return Unknown(f"its annotation {MODEL_CONFIG} is not a JSON object")
    return shape_from_config(config)


def annotated_gpu(metadata: object) -> GpuFacts | Unknown | None:
    """Read the GPU that the annotation of a pod template names; None if it has none."""
    annotations = metadata.get("annotations") if is_map(metadata) else None
    name = annotations.get(GPU) if is_map(annotations) else None
    if name is None:
        return None
    if is_unresolved(name) or not isinstance(name, str):
        return Unknown(f"its annotation {GPU} is not known yet")
    gpu = find_gpu(name)
    if isinstance(gpu, Unknown):
        return Unknown(f"its annotation {GPU} is wrong: {gpu.because}")
    return GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib)


def gather(bodies: Iterable[Mapping[str, Any]]) -> ConfigMaps:
    """Collect the ConfigMaps among some objects."""
    found = ConfigMaps()
    for body in bodies:
        found.add(body)
    return found
