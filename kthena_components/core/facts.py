"""The few numbers that checks need, read from pod templates and nothing else.

A reader never raises: whatever a manifest contains, a fact is a value, or unknown with a reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts, image_entrypoint, read_command
from kthena_components.core.known import MaybeInt, Unknown, is_late
from kthena_components.core.plan import RolePlan, ServingPlan
from kthena_components.core.quantity import is_accelerator, parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """Accelerators of one resource name in one container."""

    path: str = field(compare=False)
    container: str
    resource: str
    limit: MaybeInt | None
    request: MaybeInt | None

    @property
    def count(self) -> MaybeInt:
        """Devices that the container gets: Kubernetes gives the limit, else the request."""
        return next((n for n in (self.limit, self.request) if n is not None), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One pod template."""

    devices: tuple[DeviceFacts, ...]
    command: CommandFacts | None
    gpus_path: str = field(compare=False)
    command_path: str = field(compare=False)

    @property
    def gpus(self) -> MaybeInt:
        """Accelerators of the pod: the sum over its containers."""
        counts = [device.count for device in self.devices]
        unknown = next((count for count in counts if isinstance(count, Unknown)), None)
        return unknown or sum(count for count in counts if isinstance(count, int))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """One engine: an entry pod and its workers, which run one model together."""

    path: str = field(compare=False)
    name: str
    """Role name, or the workload's own name."""
    pods: MaybeInt
    """Pods of the engine, the entry included."""
    replicas: MaybeInt
    """Engines like this one in a group."""
    entry: PodFacts
    worker: PodFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangFacts:
    """What must be placeable together."""

    path: str = field(compare=False)
    min_member: MaybeInt
    minima: Mapping[str, MaybeInt]
    """Engines of each role that the gang waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFacts:
    """A name that will be generated, and how long it may be."""

    path: str = field(compare=False)
    name: str
    limit: int
    what: str
    """What carries the name, in words: `StatefulSet`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFacts:
    """What the checks judge."""

    path: str = field(compare=False)
    name: str
    engines: tuple[EngineFacts, ...]
    gang: GangFacts | None = None
    gang_expected: bool = False
    """The pods ask Volcano to place them."""
    names: tuple[NameFacts, ...] = ()


def facts_from_plan(plan: ServingPlan) -> ServingFacts:
    """Read the facts of a plan in the user's own coordinates."""
    engines = tuple(_engine_of(role) for role in plan.roles)
    gang = GangFacts(
        path="gang_policy",
        min_member=plan.min_member,
        minima={role.name: role.gang_replicas for role in plan.roles},
    )
    return ServingFacts(
        path="",
        name=plan.name,
        engines=engines,
        gang=gang if plan.gang and plan.pod_group is None else None,
        gang_expected=plan.gang,
    )


def _engine_of(role: RolePlan) -> EngineFacts:
    env = {naming.GROUP_SIZE: str(role.pods)}
    prefix = f"{role.path}." if role.path else ""
    overrides = {}
    if role.engine:
        overrides = {
            "gpus_path": f"{prefix}resources.gpus_per_pod",
            "command_path": f"{prefix}engine.parallelism",
        }
    worker = role.worker if role.worker_replicas else None
    return EngineFacts(
        path=role.path,
        name=role.name,
        pods=role.pods,
        replicas=role.replicas,
        entry=read_pod(role.entry, f"{prefix}entry_template", env, **overrides),
        worker=None
        if worker is None
        else read_pod(worker, f"{prefix}worker_template", env, **overrides),
    )


def read_pod(
    template: object,
    path: str,
    env: Mapping[str, str] | None = None,
    *,
    gpus_path: str | None = None,
    command_path: str | None = None,
) -> PodFacts:
    """Read a pod template, or anything else that stands where one should be.

    Args:
        template: metadata and spec, as a Deployment's `spec.template` holds them.
        path: where the template stands, in the caller's coordinates.
        env: variables that will be injected into every container.
        gpus_path: what to call the place of the GPU count instead.
        command_path: what to call the place of the command line instead.
    """
    spec = as_map(as_map(template).get("spec"))
    containers = [as_map(item) for item in as_list(spec.get("containers"))]
    devices: list[DeviceFacts] = []
    command: CommandFacts | None = None
    command_at = f"{path}.spec.containers"
    for index, container in enumerate(containers):
        at = f"{path}.spec.containers[{index}]"
        devices.extend(_devices(container, gpus_path or f"{at}.resources"))
        found = read_command(_argv(container), _env(container, env or {}))
        if found is not None and command is None:
            command, command_at = found, f"{at}.{'args' if 'args' in container else 'command'}"
    return PodFacts(
        devices=tuple(devices),
        command=command,
        gpus_path=gpus_path or (devices[0].path if devices else f"{path}.spec.containers"),
        command_path=command_path or command_at,
    )


def _devices(container: Mapping[str, Any], path: str) -> Iterator[DeviceFacts]:
    resources = as_map(container.get("resources"))
    limits, requests = as_map(resources.get("limits")), as_map(resources.get("requests"))
    for resource in sorted({key for key in (*limits, *requests) if is_accelerator(str(key))}):
        yield DeviceFacts(
            path=path,
            container=str(container.get("name")),
            resource=resource,
            limit=_devices_in(limits, resource),
            request=_devices_in(requests, resource),
        )


def _devices_in(amounts: Mapping[str, Any], resource: str) -> MaybeInt | None:
    if resource not in amounts:
        return None
    amount = amounts[resource]
    read = None if is_late(amount) else parse_quantity(amount)
    if read is None or read != read.to_integral_value():
        return Unknown(
            f"the amount of {resource} is not known yet"
            if is_late(amount)
            else f"{amount!r} is not a whole number of {resource}"
        )
    return int(read)


def _argv(container: Mapping[str, Any]) -> list[str]:
    command = as_list(container.get("command")) or image_entrypoint(str(container.get("image", "")))
    words = (*command, *as_list(container.get("args")))
    return [text_of(item) for item in words if isinstance(item, str | int | float)]


def _env(container: Mapping[str, Any], injected: Mapping[str, str]) -> dict[str, str | Unknown]:
    found: dict[str, str | Unknown] = {}
    for item in as_list(container.get("env")):
        entry = as_map(item)
        name, value = entry.get("name"), entry.get("value")
        if isinstance(name, str):
            literal = isinstance(value, str) and not is_late(value)
            found[name] = (
                str(value) if literal else Unknown(f"the value of {name} is not in the manifest")
            )
    return {**found, **injected}


def as_map(value: object) -> Mapping[str, Any]:
    """Give a mapping, empty for whatever is not one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """Give a list, empty for whatever is not one."""
    return value if isinstance(value, list | tuple) else []


def as_count(value: object, what: str, default: int) -> MaybeInt:
    """Give a count; a missing one is the default, whatever is not one is unknown."""
    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        return int(value)
    return Unknown(
        f"{what} is not known yet" if is_late(value) else f"{what} is not a whole number"
    )


def text_of(value: object) -> str:
    """Write a scalar of a command line as Kubernetes would; 8.0 is how policies see 8."""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
