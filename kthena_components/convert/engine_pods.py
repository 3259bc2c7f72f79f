"""Splits pods that a controller completes: what an engine's arguments express, and the rest.

Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.objects.object import PodSet
from kthena_components.core.plan.read_back import stated
from kthena_components.core.spec.serving_spec import ENGINE_CONTAINER
from kthena_components.core.templates import MERGE_KEYS, PROBES
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import is_name, mapping, sequence

_HOOKED = (*PROBES, "lifecycle")
"""Fields of a container that only pods with an HTTP server have."""
_LAUNCH = ("command", "args", "image", "resources", "name")
"""Fields of the engine's container that its arguments replace."""
_AMOUNTS = {"cpu": "cpu", "memory": "memory", "ephemeral_storage": "ephemeral-storage"}
_CONTROLLED = ("schedulerName", "restartPolicy")
"""Fields of a pod that a serving decides for all pods."""

_KINDS = ("limits", "requests")
_SAID = frozenset({"image", "amount", "memory"})

Named = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePod:
    """A pod of an engine."""

    set: PodSet
    container: Mapping[str, Any]
    """The container of the engine, as written."""
    index: int
    """Its index in the template."""
    is_whole: bool = True
    """Whether the engine has the pod alone. Replicas of Ray Serve may share one."""
    said: Sequence[Mapping[str, Any]] = ()
    """Variables whose meaning an argument of the role expresses, so an overlay leaves them out."""

    @property
    def amounts(self) -> dict[str, Any]:
        """Return the arguments for its requests, besides GPUs."""
        if not self.is_whole:
            return {}
        limits, requests = self.resources("limits"), self.resources("requests")
        found = {
            field: str(limits[key])
            for field, key in _AMOUNTS.items()
            if key in limits and str(requests.get(key, limits[key])) == str(limits[key])
        }
        shm = self.memory
        return stated(**found, shm=mapping(shm.get("emptyDir")).get("sizeLimit"))

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Return the arguments for its resource claims; none if one of them has no argument.

        That is a claim that pods share, or one of the requests of a claim.
        """
        listed = map(mapping, sequence(self.set.spec.get("resourceClaims")))
        named = {each.get("name"): each.get("resourceClaimTemplateName") for each in listed}
        used = [mapping(each) for each in self._used_claims]
        found = [
            {"name": each.get("name"), "template": named.get(each.get("name"))} for each in used
        ]
        whole = not any(each.get("request") for each in used)
        return found if whole and all(is_name(one["template"]) for one in found) else []

    @property
    def _used_claims(self) -> Sequence[Any]:
        return sequence(mapping(self.container.get("resources")).get("claims"))

    @property
    def shares_claims(self) -> bool:
        """Whether it has resource claims that no argument expresses."""
        return bool(self._used_claims) and not self.claims

    @property
    def command_paths(self) -> Iterator[str]:
        """Yield the paths of the words that the container starts."""
        for field in ("command", "args"):
            for index, _ in enumerate(sequence(self.container.get(field))):
                yield self.set.at(f"spec.containers[{self.index}].{field}[{index}]")

    def rest(self, peers: "Sequence[EnginePod] | None" = None) -> dict[str, Any]:
        """Return the overlay for the fields that no argument expresses.

        Args:
            peers: The other pods of the engine, which an overlay changes, too. So it must not have
                probes, or a container that one of these pods lacks. None: there are none.
        """
        spec, memory = self.set.spec, self.memory.get("name")
        left = {k: v for k, v in spec.items() if k not in _CONTROLLED}
        own = self._own(serves_alone=peers is None)
        others = [c for i, c in enumerate(sequence(spec.get("containers"))) if i != self.index]
        common = _common("containers", others, peers or ())
        left["containers"] = [*([own] if len(own) > 1 else []), *common]
        inits = sequence(spec.get("initContainers"))
        left["initContainers"] = _common("initContainers", inits, peers or ())
        left["volumes"] = [
            volume
            for volume in sequence(spec.get("volumes"))
            if mapping(volume).get("name") != memory or memory is None
        ]
        said = {one["name"] for one in self.claims}
        left["resourceClaims"] = [
            each
            for each in sequence(spec.get("resourceClaims"))
            if mapping(each).get("name") not in said
        ]
        labels = {k: v for k, v in self.set.labels.items() if k not in naming.KTHENA_LABELS}
        metadata = {"labels": labels, "annotations": dict(self.set.annotations)}
        made = _parts({"metadata": _parts(metadata), "spec": _parts(left)})
        return dict(_without_nulls(made))

    def _own(self, *, serves_alone: bool) -> dict[str, Any]:
        """Return what the engine's container has beyond its arguments, for the overlay."""
        made = {k: v for k, v in self.container.items() if k not in _LAUNCH}
        if not serves_alone:
            made = {k: v for k, v in made.items() if k not in _HOOKED}
        made["volumeMounts"] = [
            mount
            for mount in sequence(made.get("volumeMounts"))
            if mapping(mount).get("mountPath") != SHM_PATH or not self.memory
        ]
        made["env"] = [each for each in sequence(made.get("env")) if each not in self.said]
        said = {_AMOUNTS[field] for field in self.amounts if field in _AMOUNTS}
        left = {
            kind: {
                key: amount
                for key, amount in self.resources(kind).items()
                if self.is_whole and not is_accelerator(key) and key not in said
            }
            for kind in _KINDS
        }
        return {"name": ENGINE_CONTAINER, **_parts({**made, "resources": _parts(left)})}

    def resources(self, kind: str) -> Mapping[str, Any]:
        """Return the limits or the requests of the container."""
        return mapping(mapping(self.container.get("resources")).get(kind))

    @property
    def memory(self) -> Mapping[str, Any]:
        """Return the volume at /dev/shm, if it is memory that no other container mounts."""
        mounts = map(mapping, sequence(self.container.get("volumeMounts")))
        name = next((m.get("name") for m in mounts if m.get("mountPath") == SHM_PATH), None)
        for volume in map(mapping, sequence(self.set.spec.get("volumes"))):
            memory = mapping(volume.get("emptyDir")).get("medium") == "Memory"
            if name is not None and volume.get("name") == name and memory:
                return volume
        return {}


def engine_pod(pods: PodSet, name: str | None) -> EnginePod:
    """Return a pod with its engine's container: of this name, or else the first one."""
    listed = [mapping(item) for item in sequence(pods.spec.get("containers"))]
    named = [index for index, item in enumerate(listed) if item.get("name") == name]
    index = next(iter(named), 0)
    return EnginePod(set=pods, container=listed[index] if index < len(listed) else {}, index=index)


def named_leaves(value: Any, at: Named = (), field: str = "") -> Iterator[tuple[Named, str]]:
    """Yield the scalars of a template with their paths. Members of lists are found by name."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from named_leaves(item, (*at, str(key)), str(key))
    elif isinstance(value, list | tuple):
        merge = MERGE_KEYS.get(field)
        for index, item in enumerate(value):
            name = mapping(item).get(merge) if merge is not None else None
            yield from named_leaves(item, (*at, f"[{index if name is None else name}]"))
    elif value is not None and value != "":
        yield at, str(value)


Said = tuple[object, ...]
"""A setting of a pod, to compare pods: its kind or path, and its value."""


def says(pod: EnginePod) -> Iterator[Said]:
    """Yield the settings of a pod."""
    yield "image", str(pod.container.get("image"))
    yield from (("amount", *pair) for pair in pod.amounts.items())
    yield "memory", bool(pod.memory)
    for kind in ("limits", "requests"):
        for key, amount in pod.resources(kind).items():
            if is_accelerator(key):
                yield "GPUs", kind, key, str(amount)
    yield from named_leaves(pod.rest())


def shared(
    pods: Sequence[EnginePod], leads: Sequence[EnginePod], overlays: Sequence[object]
) -> frozenset[object]:
    """Return the settings of pods that the description keeps, each with the path of its pods.

    Args:
        pods: All pods of the object's engines.
        leads: The pods that the roles are described by.
        overlays: The overlays of the roles.
    """
    said = {each for lead in leads for each in says(lead) if each[0] in _SAID}
    said |= {each for lead in leads for each in _gpus(lead)}
    said |= {each for overlay in overlays for each in named_leaves(overlay)}
    return frozenset((pod.set.path, each) for pod in pods for each in says(pod) if each in said)


def _common(field: str, items: Sequence[Any], peers: Sequence[EnginePod]) -> list[Any]:
    """Return the items that all other pods of the engine have, too; all if there are none."""
    return [one for one in items if all(one in sequence(p.set.spec.get(field)) for p in peers)]


def _gpus(lead: EnginePod) -> Iterator[Said]:
    """Yield the settings for GPUs that a described pod gets: limits, and requests equal to them."""
    amounts = {**lead.resources("requests"), **lead.resources("limits")}
    for key, amount in amounts.items():
        if is_accelerator(key) and lead.is_whole:
            yield from (("GPUs", kind, key, str(amount)) for kind in _KINDS)


def _parts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out empty maps and lists."""
    return {key: item for key, item in fields.items() if item not in ({}, [])}


def _without_nulls(value: Any) -> Any:
    """Leave out null, which an overlay reads as a removal."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list | tuple) else value
