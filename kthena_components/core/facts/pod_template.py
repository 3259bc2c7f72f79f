"""Reads a pod template: accelerators and command line of each container.

A reader never raises: a fact is a value, or Unknown with a reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.engines.shapes import idle_branch, idle_command, never_ends
from kthena_components.core.facts.claims import read_claims
from kthena_components.core.facts.container import (
    ContainerFacts,
    SharedMemory,
    read_container,
    read_volumes,
    sidecars,
    written_for_role,
)
from kthena_components.core.facts.container_commands import (
    METADATA_FIELD,
    engine_places,
    read_argv,
    read_started,
)
from kthena_components.core.facts.context import NO_CONTEXT, Context, annotated_gpu, stated_shape
from kthena_components.core.facts.devices import (
    claimed,
    hidden_devices,
    name_in_pod,
    on_cpus,
    read_devices,
    sees_more,
    selects_gke,
    slices,
)
from kthena_components.core.facts.files import PodVolumes, offline
from kthena_components.core.facts.network import (
    asks_cluster,
    engine_variables,
    network_variables,
    variable_names,
)
from kthena_components.core.facts.pod import MetadataField, PodFacts
from kthena_components.core.findings import join_path
from kthena_components.core.hardware import GpuFacts, parted_chips, stated_gpu
from kthena_components.core.models import ModelShape, find_by_folder, find_model
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_inside
from kthena_components.core.values.unknown import Unknown, is_unresolved

__all__ = ["read_pod", "read_pods"]

_SHM_ANNOTATION = "io.kubernetes.cri-o.ShmSize"
"""CRI-O's size of /dev/shm (cri-o pkg/annotations/annotations.go)."""


def read_pod(
    template: object,
    path: str,
    env: Mapping[str, str] | None = None,
    *,
    context: Context = NO_CONTEXT,
    gpus_path: str | None = None,
    command_path: str | None = None,
    role_path: str | None = None,
) -> PodFacts:
    """Read a pod template, or any other value in its place.

    Args:
        template: metadata and spec, as in a Deployment's `spec.template`.
        path: Path of the template, in the caller's input.
        env: Variables that will be injected into every container.
        context: The context of the object with the template.
        gpus_path: Path to report for the GPU count instead.
        command_path: Path to report for the command line instead.
        role_path: Path of the role for whose engine the package wrote this template.
    """
    pod = read_pods(template, path, env, context)[0]
    if role_path is not None:
        own = pod.own and written_for_role(pod.own, role_path, engine=True)
        others = (written_for_role(c, role_path, engine=False) for c in pod.others)
        flags_path = ".".join(filter(None, (role_path, "engine.extra_args")))
        pod = replace(pod, own=own, others=tuple(others), flags_path=flags_path)
    if gpus_path is not None:
        devices = tuple(replace(device, path=gpus_path) for device in pod.devices)
        pod = replace(pod, devices=devices, gpus_path=gpus_path)
    return pod if command_path is None else replace(pod, command_path=command_path)


def read_pods(
    template: object, path: str, env: Mapping[str, str] | None = None, context: Context = NO_CONTEXT
) -> list[PodFacts]:
    """Read a pod template, once for each engine in it, and once if it starts none.

    This includes sidecars: init containers with restartPolicy Always, which keep running.
    """
    spec = mapping(template).get("spec")
    items, at = mapping(spec).get("containers"), join_path(path, "spec.containers")
    if any(map(is_unresolved, (template, spec, items, *sequence(items)))):
        return [_hidden(at)]
    spec = context.limits.fill(mapping(spec), context.namespace)
    metadata = mapping(template).get("metadata")
    stated, named = stated_shape(metadata), annotated_gpu(metadata)
    volumes = PodVolumes(read_volumes(spec), context, spec, metadata)
    found = [
        _shaped(read, context, stated, spec)
        for read in _read_containers(spec, volumes, path, env or {})
    ]
    engines = engine_places([(each.command, each.gap) for each in found])
    placed, parted = stated_gpu(spec), parted_chips(spec)
    pods = [
        replace(found[i], gpu=_gpu_of(found[i], placed, named, spec, context), parted=parted)
        for i in engines
    ]
    # The first pod has all accelerators but those of the other engines, which have their own.
    first = pods[0] if pods else replace(_without_engine(found, at), gpu=placed)
    shared = [container for i, container in enumerate(found) if i not in engines[1:]]
    inits = _init_containers(spec, volumes, join_path(path, "spec.initContainers"))
    first = replace(
        first,
        devices=tuple(device for container in shared for device in container.devices),
        others=_other_containers(found, engines, inits),
        missing=tuple(key for container in shared for key in container.missing),
    )
    return [_with_metadata(pod, metadata) for pod in (first, *pods[1:])]


def _with_metadata(pod: PodFacts, metadata: object) -> PodFacts:
    """Return a pod with what the metadata of its template states.

    That is the memory at /dev/shm which its runtime gives it, and the values of variables.
    """
    if pod.from_metadata:
        unset = [each for each in pod.from_metadata if _states_none(each, metadata)]
        pod = replace(pod, from_metadata=tuple(unset))
    annotations = mapping(metadata).get("annotations")
    gap = first_unknown(metadata, annotations)
    sized = _SHM_ANNOTATION in mapping(annotations)
    if pod.own is None or pod.own.shm is not SharedMemory.NOTHING or not (gap or sized):
        return pod
    return replace(pod, own=replace(pod.own, shm=gap or SharedMemory.MEMORY))


def _states_none(read: MetadataField, metadata: object) -> bool:
    """Return whether the metadata of a template is known not to have a label or annotation."""
    held = mapping(metadata).get(read.part)
    return not first_unknown(metadata, held) and read.key not in mapping(held)


def _from_metadata(container: Mapping[str, Any], path: str) -> tuple[MetadataField, ...]:
    """Return the variables of a container that come from labels and annotations of its pod."""
    read: list[MetadataField] = []
    for index, entry in enumerate(sequence(container.get("env"))):
        source = mapping(mapping(mapping(entry).get("valueFrom")).get("fieldRef"))
        name, stated = mapping(entry).get("name"), source.get("fieldPath")
        found = METADATA_FIELD.fullmatch(stated) if isinstance(stated, str) else None
        if isinstance(name, str) and found is not None:
            at = f"{path}.env[{index}].valueFrom.fieldRef.fieldPath"
            read.append(MetadataField(name, found[1], found[2], at))
    return tuple(read)


def _gpu_of(
    read: PodFacts,
    placed: GpuFacts | Unknown | None,
    named: GpuFacts | Unknown | None,
    spec: Mapping[str, Any],
    context: Context,
) -> GpuFacts | Unknown | None:
    """Return the GPU of a container: by its devices, else by placement, else by the user's word.

    Args:
        placed: The GPU that the pod's placement states.
        named: The GPU that the annotation of its template names.
    """
    stated = next((gpu for gpu in (read.gpu, placed) if isinstance(gpu, GpuFacts)), None)
    if stated or read.on_cpus is not False:
        return stated or read.gpu or placed
    return named or context.gpus.of(spec, read.accelerators) or read.gpu or placed


def _read_containers(
    spec: Mapping[str, Any], volumes: PodVolumes, path: str, env: Mapping[str, str]
) -> Iterator[PodFacts]:
    """Read the containers of a pod, and the sidecars that start an engine."""
    at = join_path(path, "spec.containers")
    for index, container in enumerate(sequence(spec.get("containers"))):
        yield _container(mapping(container), spec, volumes, f"{at}[{index}]", env)
    for sidecar, where in sidecars(spec, path):
        read = _container(sidecar, spec, volumes, where, env)
        if read.command and read.command.engine:
            yield read


def _other_containers(
    found: list[PodFacts], engines: list[int], inits: Iterable[ContainerFacts]
) -> tuple[ContainerFacts, ...]:
    """Return the containers and init containers that start no engine."""
    started = {own.path for i in engines if (own := found[i].own)}
    beside = (own for container in found if (own := container.own))
    return tuple(own for own in (*beside, *inits) if own.path not in started)


def _without_engine(found: list[PodFacts], path: str) -> PodFacts:
    """Return the facts of a pod none of whose containers has a command that can be read."""
    gap = next((container.gap for container in found if container.gap), None)
    gpus_path = next((d.path for container in found for d in container.devices), path)
    idle = found[0].idle if len(found) == 1 else ""
    return PodFacts(
        devices=(), command=None, gpus_path=gpus_path, command_path=path, gap=gap, idle=idle
    )


def _is_bare(container: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether nothing but a container's command starts a program in its pod."""
    return len(sequence(spec.get("containers"))) == 1 and container.get("lifecycle") is None


def _init_containers(
    spec: Mapping[str, Any], pod: PodVolumes, path: str
) -> Iterator[ContainerFacts]:
    for index, container in enumerate(sequence(spec.get("initContainers"))):
        one = mapping(container)
        read = read_container(one, spec, f"{path}[{index}]", pod.volumes)
        policy = one.get("restartPolicy")
        serves = policy is None and never_ends(read_argv(one))
        stays = policy == "Always"
        unread = _unread(one) if stays else None
        yield replace(read, serves=serves, stays=stays, unread=unread)


def _unread(container: Mapping[str, Any]) -> Unknown | None:
    """Return why the command line or a variable of a container is not known."""
    env = sequence(container.get("env"))
    words = [container.get(key) for key in ("command", "args", "env")]
    return unknown_inside(*words) or unknown_inside(*map(mapping, env))


def _hidden(path: str) -> PodFacts:
    """Return the facts of a pod whose containers are unknown."""
    gap = Unknown("the containers are not known yet")
    device = hidden_devices(path, gap)
    return PodFacts(devices=(device,), command=None, gpus_path=path, command_path=path, gap=gap)


def _command_field(container: Mapping[str, Any]) -> str:
    """Return the field with the options of a container; args are behind what the image starts."""
    return "command" if "command" in container and "args" not in container else "args"


def _container(
    container: Mapping[str, Any],
    spec: Mapping[str, Any],
    pod: PodVolumes,
    path: str,
    env: Mapping[str, str],
) -> PodFacts:
    """Read one container as if it were the only one of its pod."""
    start = read_started(container, pod, path, env)
    claims = read_claims(container, spec, pod.context)
    place = f"{path}.resources"
    devices = tuple(read_devices(container, place, claims, on_gke=selects_gke(spec)))
    return PodFacts(
        devices=devices,
        command=start.command,
        gpus_path=f"{path}.resources",
        command_path=f"{path}.{_command_field(container)}",
        container=None if start.command is None else name_in_pod(container),
        gap=start.gap,
        own=read_container(container, spec, path, pod.volumes, start.given.files),
        gpu=slices(devices) or claims.gpu,
        sees_more=sees_more(container, start.given.env, claims),
        claimed=claimed(container, claims),
        sliced=pod.context.sharing.of(device.resource for device in devices),
        on_cpus=on_cpus(container, devices, start.command),
        on_host=spec.get("hostNetwork") not in (None, False),
        cluster_names=asks_cluster(spec),
        variables=network_variables(container, start.given, start.words, start.command, path),
        stated=variable_names(container),
        service_links=spec.get("enableServiceLinks") is not False,
        offline=offline(container, spec, start.given.env),
        from_metadata=_from_metadata(container, path),
        engine_variables=engine_variables(container, start.given, path),
        idle=idle_command(start.words) if _is_bare(container, spec) else "",
        idle_branch=idle_branch(start.words) if _is_bare(container, spec) else "",
        missing=tuple(start.given.missing),
    )


def _shaped(
    pod: PodFacts, context: Context, stated: ModelShape | Unknown | None, spec: Mapping[str, Any]
) -> PodFacts:
    """Add the shape of the model: as the pod states it, else the object, else the caller.

    Without it, add the model that an init container downloads.
    """
    model, shape = pod.command and pod.command.model, stated or context.shape
    if shape is None and isinstance(model, str):
        shape = context.shapes.get(model.casefold())
    if shape is not None:
        return replace(pod, shape=shape)
    downloaded = downloaded_model(spec, model)
    return pod if downloaded is None else replace(pod, downloaded=downloaded)


def downloaded_model(spec: Mapping[str, Any], folder: object) -> ModelShape | None:
    """Return the model that an init container downloads to a folder; None if none is named.

    The container's words have the folder, or one above it, and name one model of the table by its
    name or by a URI: `--source hf://Qwen/Qwen3-8B --output-dir /models/mine`.

    Args:
        folder: The model in the engine's command line.
    """
    if not isinstance(folder, str) or not folder.startswith("/"):
        return None
    for container in map(mapping, sequence(spec.get("initContainers"))):
        words = set(_words(read_argv(container)))
        if any(_holds(word, folder) for word in words):
            found = {shape.name: shape for word in words if (shape := _model_named(word))}
            if len(found) == 1:
                return next(iter(found.values()))
    return None


def _words(argv: Iterable[object]) -> Iterable[str]:
    """Return the words of a command or of its script, and the values behind `=`."""
    for text in argv:
        for word in text.split() if isinstance(text, str) else ():
            yield word.rpartition("=")[2].strip("\"'")


def _holds(word: str, folder: str) -> bool:
    return (
        len(word) > 1 and word.startswith("/") and f"{folder}/".startswith(f"{word.rstrip('/')}/")
    )


def _model_named(word: str) -> ModelShape | None:
    if word.startswith("/"):
        return None
    shape = find_model(word) if "://" not in word and "/" in word else find_by_folder(word)
    return None if isinstance(shape, Unknown) else shape
