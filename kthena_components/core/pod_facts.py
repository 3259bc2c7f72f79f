"""What a pod template says of its engine: devices and command line, container by container.

A reader never raises: whatever a manifest contains, a fact is a value, or unknown with a reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from kthena_components.core import naming
from kthena_components.core.container_facts import (
    ContainerFacts,
    as_list,
    as_map,
    read_container,
    written_for_role,
)
from kthena_components.core.engines import CommandFacts, image_entrypoint, read_command
from kthena_components.core.findings import join_path
from kthena_components.core.hardware import GpuFacts, stated_gpu
from kthena_components.core.known import LATE_CLOSE, LATE_OPEN, MaybeInt, Unknown, is_late
from kthena_components.core.quantity import is_accelerator, parse_quantity
from kthena_components.core.spec_parse import show_value

MAX_COUNT = 2**31 - 1
"""Counts are 32 bit in Kubernetes. What is larger is a mistake, and is not computed with."""
_ANY = "accelerators"
"""Stands for the resource where it is not known which one it is."""
_LATE = f"{LATE_OPEN}0{LATE_CLOSE}"
_LONG_INT = 10_000
"""Bits of the largest integer that Python writes in decimal without complaint, rounded down."""
_REMEMBERED = 8_192
"""Characters of a command line whose facts are remembered, with the line itself."""
_PLACES = frozenset({naming.ENTRY_ADDRESS, naming.WORKER_INDEX})
"""Variables that differ from pod to pod: facts are about all pods of a template."""


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
    container: str | None = None
    """Container that the command is in. None: there is no command."""
    gap: Unknown | None = None
    """Why there may be a command all the same, which could not be read."""
    own: ContainerFacts | None = None
    """The container that the command is in."""
    others: tuple[ContainerFacts, ...] = ()
    """The other containers, init containers too, except those that start engines of their own."""
    gpu: GpuFacts | Unknown | None = None
    """The GPU that the pod's placement states. None: nothing says it."""

    @property
    def gpus(self) -> MaybeInt:
        """Accelerators of the engine: a container cannot reach those of its neighbours."""
        return _sum(d for d in self.devices if self.container in {None, d.container})

    @property
    def all_gpus(self) -> MaybeInt:
        """Accelerators of the pod: the sum over its containers."""
        return _sum(self.devices)

    @property
    def asks_for_gpus(self) -> bool:
        """Whether a container names a resource that is an accelerator."""
        return any(is_accelerator(device.resource) for device in self.devices)


def _sum(devices: Iterable[DeviceFacts]) -> MaybeInt:
    total = 0
    for device in devices:
        if isinstance(device.count, Unknown):
            return device.count
        total += device.count
    return total


def read_pod(
    template: object,
    path: str,
    env: Mapping[str, str] | None = None,
    *,
    gpus_path: str | None = None,
    command_path: str | None = None,
    role_path: str | None = None,
) -> PodFacts:
    """Read a pod template, or anything else that stands where one should be.

    Args:
        template: metadata and spec, as a Deployment's `spec.template` holds them.
        path: where the template stands, in the caller's coordinates.
        env: variables that will be injected into every container.
        gpus_path: what to call the place of the GPU count instead.
        command_path: what to call the place of the command line instead.
        role_path: where the role stands whose engine the package wrote this template for.
    """
    pod = read_pods(template, path, env)[0]
    if role_path is not None:
        own = pod.own and written_for_role(pod.own, role_path, engine=True)
        others = (written_for_role(c, role_path, engine=False) for c in pod.others)
        pod = replace(pod, own=own, others=tuple(others))
    return replace(
        pod,
        devices=tuple(replace(device, path=gpus_path or device.path) for device in pod.devices),
        gpus_path=gpus_path or pod.gpus_path,
        command_path=command_path or pod.command_path,
    )


def read_pods(template: object, path: str, env: Mapping[str, str] | None = None) -> list[PodFacts]:
    """Read a pod template, once for each engine in it, and once when it starts none."""
    spec = as_map(template).get("spec")
    items, at = as_map(spec).get("containers"), join_path(path, "spec.containers")
    if any(map(is_late, (template, spec, items, *as_list(items)))):
        return [_hidden(at)]
    spec = as_map(spec)
    found = [
        _container(as_map(c), spec, f"{at}[{i}]", env or {}) for i, c in enumerate(as_list(items))
    ]
    starts = [c for c in found if c.command and c.command.engine]
    starts = starts or [c for c in found if c.command][:1]
    others = {id(container) for container in starts[1:]}
    devices = tuple(d for c in found if id(c) not in others for d in c.devices)
    engines = {id(container) for container in starts}
    beside = tuple(c.own for c in found if c.own and id(c) not in engines)
    beside += tuple(_init_containers(spec, join_path(path, "spec.initContainers")))
    gpu = stated_gpu(spec)
    if starts:
        rest = (replace(start, gpu=gpu) for start in starts[1:])
        return [replace(starts[0], devices=devices, others=beside, gpu=gpu), *rest]
    gap = next((c.gap for c in found if c.gap), None)
    gpus_at = devices[0].path if devices else at
    pod = PodFacts(devices=devices, command=None, gpus_path=gpus_at, command_path=at)
    return [replace(pod, gap=gap, others=beside, gpu=gpu)]


def _init_containers(spec: Mapping[str, Any], path: str) -> Iterator[ContainerFacts]:
    for index, container in enumerate(as_list(spec.get("initContainers"))):
        yield read_container(as_map(container), spec, f"{path}[{index}]")


def _hidden(path: str) -> PodFacts:
    """Give the facts of a pod whose containers are not known."""
    gap = Unknown("the containers are not known yet")
    device = DeviceFacts(path=path, container="", resource=_ANY, limit=gap, request=None)
    return PodFacts(devices=(device,), command=None, gpus_path=path, command_path=path, gap=gap)


def _container(
    container: Mapping[str, Any], spec: Mapping[str, Any], path: str, env: Mapping[str, str]
) -> PodFacts:
    """Read one container as if it were alone in its pod."""
    argv = _argv(container)
    read = _command if sum(map(len, argv)) <= _REMEMBERED else _command.__wrapped__
    command = read(tuple(argv), tuple(_env(container, env).items()))
    name, gap = _name(container), None
    if command is None and any(map(is_late, argv)):
        gap = Unknown(f"the command line of container '{name}' is not known yet")
    elif command is None and argv and is_late(container.get("image")):
        gap = Unknown(f"the image of container '{name}' decides what starts, and is not known yet")
    return PodFacts(
        devices=tuple(_devices(container, f"{path}.resources")),
        command=command,
        gpus_path=f"{path}.resources",
        command_path=f"{path}.{'args' if 'args' in container else 'command'}",
        container=None if command is None else name,
        gap=gap,
        own=read_container(container, spec, path),
    )


@lru_cache(maxsize=1024)
def _command(
    argv: tuple[str, ...], env: tuple[tuple[str, str | Unknown], ...]
) -> CommandFacts | None:
    """Read a command once: the checks, the outputs and the table all ask for its facts."""
    return read_command(argv, dict(env))


def _name(container: Mapping[str, Any]) -> str:
    name = container.get("name")
    return name if isinstance(name, str) and not is_late(name) else "?"


def _devices(container: Mapping[str, Any], path: str) -> Iterator[DeviceFacts]:
    name, resources = _name(container), as_map(container.get("resources"))
    limits, requests = resources.get("limits"), resources.get("requests")
    keys = (str(key) for key in (*as_map(limits), *as_map(requests)))
    named = sorted({key for key in keys if is_accelerator(key)})
    for resource in named:
        yield DeviceFacts(
            path=path,
            container=name,
            resource=resource,
            limit=_devices_in(limits, resource),
            request=_devices_in(requests, resource),
        )
    unnamed = None
    if any(map(is_late, (container.get("resources"), limits, requests))):
        unnamed = Unknown(f"the resources of container '{name}' are not known yet")
    elif not named:
        unnamed = _unnamed(name, resources)
    if unnamed is not None:
        yield DeviceFacts(path=path, container=name, resource=_ANY, limit=unnamed, request=None)


def _unnamed(name: str, resources: Mapping[str, Any]) -> Unknown | None:
    """Say what may hold accelerators that no known resource name tells of."""
    if as_list(resources.get("claims")):
        return Unknown(f"container '{name}' gets devices by resource claims")
    keys = (*as_map(resources.get("limits")), *as_map(resources.get("requests")))
    other = next((key for key in map(str, keys) if "/" in key), None)
    return Unknown(f"it is not known here what devices {other} stands for") if other else None


def _devices_in(amounts: object, resource: str) -> MaybeInt | None:
    amount = amounts if is_late(amounts) else as_map(amounts).get(resource)
    if amount is None:
        return None
    if is_late(amount):
        return Unknown(f"the amount of {resource} is not known yet")
    if resource.startswith("aws.amazon.com/neuron") and not resource.endswith("core"):
        return Unknown(f"one {resource} has several cores, as many as its kind says")
    read = parse_quantity(amount)
    if read is None or not 0 <= read <= MAX_COUNT or read != read.to_integral_value():
        return Unknown(f"{show_value(amount)} is not a count of {resource}")
    return int(read)


def _argv(container: Mapping[str, Any]) -> list[str]:
    command = _words(container.get("command")) or [
        *image_entrypoint(str(container.get("image", "")))
    ]
    return [*command, *_words(container.get("args"))]


def _words(value: object) -> list[str]:
    if is_late(value):
        # The whole list is not known: one word may be the model, another one any flag.
        return [_LATE, _LATE]
    return [text_of(item) for item in as_list(value) if isinstance(item, str | int | float)]


def _env(container: Mapping[str, Any], injected: Mapping[str, str]) -> dict[str, str | Unknown]:
    found: dict[str, str | Unknown] = {}
    for item in as_list(container.get("env")):
        entry = as_map(item)
        name, value = entry.get("name"), entry.get("value")
        if isinstance(name, str) and name not in _PLACES:
            literal = isinstance(value, str) and not is_late(value)
            found[name] = (
                str(value) if literal else Unknown(f"the value of {name} is not in the manifest")
            )
    return {**found, **injected}


def as_count(value: object, what: str, default: int) -> MaybeInt:
    """Give a count; a missing one is the default, whatever is not one is unknown."""
    if value is None:
        return default
    if is_late(value):
        return Unknown(f"{what} is not known yet")
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if 0 <= number <= MAX_COUNT and number == int(number):
        return int(number)
    return Unknown(f"{what} is {show_value(value)}, which is not a count")


def text_of(value: object) -> str:
    """Write a scalar of a command line as Kubernetes would; 8.0 is how policies see 8."""
    if is_late(value) and LATE_OPEN not in str(value):
        return _LATE
    if isinstance(value, int) and value.bit_length() > _LONG_INT:
        return hex(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
