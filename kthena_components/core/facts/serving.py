"""The numbers that checks need, read from pod templates only."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import field

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.container import ContainerFacts
from kthena_components.core.facts.network import PodHosts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.pod_template import read_pod, read_pods
from kthena_components.core.facts.server_ports import ServerFacts
from kthena_components.core.findings import paths_above
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, product, total

__all__ = [
    "ContainerFacts",
    "DeviceFacts",
    "EngineFacts",
    "GangFacts",
    "NameFacts",
    "PodFacts",
    "ServingFacts",
    "SiblingFacts",
    "StartOrder",
    "read_pod",
    "read_pods",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingFacts:
    """The pods made of one template."""

    count: int
    commands: tuple[CommandFacts, ...] = ()
    """Their command lines, by ordinal. Empty if all have the same one, or if they are unknown."""
    at_once: MaybeInt | None = None
    """How many of them a Job runs at a time. None: they run together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOrder:
    """Why the other pods of an engine start only when its first one is ready."""

    path: str
    """Path of the field that says so."""
    why: str
    """A clause with the field."""
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """One engine: an entry pod and its workers, which run one model together."""

    path: str = field(compare=False)
    name: str
    """Role name, or the workload's own name."""
    pods: MaybeInt
    """Pods of the engine, the entry included."""
    replicas: MaybeInt
    """Number of such engines in a group."""
    entry: PodFacts
    worker: PodFacts | None
    siblings: SiblingFacts | None = field(default=None, compare=False)
    """The pods of its template, if the object states their number. None: a system makes them."""
    one_stage: bool = field(default=False, compare=False)
    """Whether its controller ignores a pipeline."""
    ray_started: bool = field(default=False, compare=False)
    """Whether its controller, chart or image starts Ray in its pods, as far as is known."""
    order: StartOrder | None = field(default=None, compare=False)
    """Why its other pods wait for the first one. None: they do not."""
    counted_by: str = field(default="", compare=False)
    """Path of the map whose `nodeCount` is the number of its pods, which its controller connects; 1
    pod without it. Empty: there is no such field."""

    def worker_template(self, paths: Container[str]) -> str:
        """Return which of some templates its workers are made from; empty if none."""
        at = "" if self.worker is None else self.worker.command_path
        return next((path for path in paths_above(at, ".") if path in paths), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class GangFacts:
    """The pods that must be placed together."""

    path: str = field(compare=False)
    min_member: MaybeInt
    minima: Mapping[str, MaybeInt]
    """Number of engines that the gang waits for, by role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFacts:
    """A name that will be generated, and its maximum length."""

    path: str = field(compare=False)
    name: str
    limit: int
    what: str
    """The object or label that gets the name, in words: `StatefulSet`."""
    made: bool = True
    """Whether it is derived from the serving's and the role's name, not written by the user."""
    part: str = ""
    """What to shorten, in words. Empty: the serving's or the role's name, or the name itself."""
    by_default: bool = False
    """Whether a setting of the cluster may change how it is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFacts:
    """The input of the checks."""

    path: str = field(compare=False)
    name: str
    engines: tuple[EngineFacts, ...]
    gang: GangFacts | None = None
    gang_expected: MaybeBool = False
    """Whether Volcano schedules the pods."""
    gang_by_annotation: bool = field(default=False, compare=False)
    """Whether Volcano makes a gang of one pod, unless an annotation states the minimum."""
    names: tuple[NameFacts, ...] = field(default=(), compare=False)
    """Names that its controllers will generate."""
    controller_env: tuple[str, ...] | None = field(default=None, compare=False)
    """Variables that its controller gives to pods, and prefixes of them. None: not known."""
    numbered_with: tuple[str, str] = field(default=("", ""), compare=False)
    """How to let a controller number the pods, if none does yet, and the variable with the number:
    empty for a StatefulSet, whose pods have the number as a label."""
    has_random_names: bool = field(default=False, compare=False)
    """Whether the names and host names of its pods end in random letters."""
    added_fields: frozenset[str] | None = field(default=None, compare=False)
    """Labels and annotations that its controller adds to pods, as `metadata.labels['app']`.
    None: not known."""
    label_owners: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Controllers by the domains of labels and annotations that only they add to pods."""
    labels_by_field: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Fields without which a controller does not add a label or annotation."""
    pods_as_stated: bool = field(default=True, compare=False)
    """Whether its controller brings no model and mounts no volumes that no template states."""
    unread: Unknown | None = field(default=None, compare=False)
    """Why it may have other engines. None: it has none."""
    gpu_option: str = field(default="", compare=False)
    """How the user may name a GPU that nothing names. Empty: it is not said."""
    hosts: PodHosts | None = field(default=None, compare=False)
    """The names of its pods in the DNS of the cluster. None: not known."""
    unnamed_in: str = field(default="", compare=False)
    """The namespace of pods that have no names but those of their controller. Empty: it is not
    known, or a template states a name."""
    servers: tuple[ServerFacts, ...] = field(default=(), compare=False)
    """Servers in pod templates that are not engines, or whose port only these facts state."""
    copies: MaybeInt = field(default=1, compare=False)
    """Number of copies of all of this, such as groups. Only rules about names and sums use it."""


# Counts the accelerators of servings whose pods are not in the manifest.


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDemand:
    """The accelerators of an object without pod templates."""

    gpus: MaybeInt
    """Accelerators of all its pods."""
    resources: frozenset[str] = frozenset()
    """Their resource names."""


def gpu_demand(facts: ServingFacts) -> GpuDemand:
    """Add up the accelerators of all engines of a serving, with all their replicas."""
    one: MaybeInt = 0
    for engine in facts.engines:
        one = total((one, product(engine.replicas, all_gpus_of(engine))))
    pods = [pod for e in facts.engines for pod in (e.entry, e.worker) if pod is not None]
    return GpuDemand(gpus=product(facts.copies, one), resources=frozenset(_resources(pods)))


def all_gpus_of(engine: EngineFacts) -> MaybeInt:
    """Count the accelerators of all pods of one engine, over all their containers."""
    entry = engine.entry.all_gpus
    alone = engine.pods == 0 or not shared_claims(engine.entry.devices)
    if engine.worker is None and alone:
        return product(engine.pods, entry)
    worker = engine.worker or engine.entry
    workers = engine.pods if isinstance(engine.pods, Unknown) else max(engine.pods - 1, 0)
    more = _less_shared(workers, worker.devices, engine.entry.devices)
    return total((entry, product(workers, worker.all_gpus), more))


def _resources(pods: list[PodFacts]) -> list[str]:
    return [d.resource for pod in pods for d in pod.devices if "/" in d.resource]


def ranks_of(engine: EngineFacts, command: CommandFacts) -> MaybeInt:
    """Count the ranks of all pods of an engine."""
    per_rank, pods = command.per_rank_world, engine.pods
    if isinstance(command.data_mode, Unknown):
        return command.data_mode
    if command.data_mode == "internal" and not starts_later_copies(command):
        return command.world
    here = 1 if command.data_mode == "external" else command.data_local
    for value in (per_rank, pods, here):
        if isinstance(value, Unknown):
            return value
    if not (isinstance(per_rank, int) and isinstance(pods, int) and isinstance(here, int)):
        return Unknown("--data-parallel-size-local is not stated")
    return per_rank * here * pods


def starts_later_copies(command: CommandFacts) -> bool:
    """Return whether the first pod of an object starts later copies of another object's engine."""
    first = command.data_start_rank
    behind = command.headless is True and isinstance(first, int) and first > 0
    behind = behind and command.data_mode == "internal"
    return behind and command.nnodes in {None, 1} and isinstance(command.data_local, int)


def gpus_of(engine: EngineFacts) -> MaybeInt:
    """Count the GPUs of all pods of an engine."""
    pods, entry = engine.pods, engine.entry.gpus
    if isinstance(pods, Unknown) or isinstance(entry, Unknown):
        return pods if isinstance(pods, Unknown) else entry
    worker = engine.worker.gpus if engine.worker else entry
    if isinstance(worker, Unknown) and pods > 1:
        return worker
    if not isinstance(worker, int):
        return entry
    theirs, firsts = (engine.worker or engine.entry).own_devices, engine.entry.own_devices
    return total((entry, (pods - 1) * worker, _less_shared(max(pods - 1, 0), theirs, firsts)))


def shared_claims(devices: Iterable[DeviceFacts]) -> dict[str, MaybeInt]:
    """Return the devices of ResourceClaims, which each pod that names the claim has."""
    return {device.claim: device.count for device in devices if device.shared}


def _less_shared(
    workers: MaybeInt, theirs: Iterable[DeviceFacts], firsts: Iterable[DeviceFacts]
) -> MaybeInt:
    """Return how many devices are counted too often if each worker has its own, below 0."""
    counted, first = shared_claims(theirs), shared_claims(firsts)
    if not counted or workers == 0:
        return 0
    once = total(count for claim, count in counted.items() if claim not in first)
    often = product(workers, total(counted.values()))
    return total((once, product(-1, often)))
