"""What is known of one pod: its accelerators, and the command line of its engine."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.container import ContainerFacts
from kthena_components.core.facts.devices import NEURON, DeviceFacts
from kthena_components.core.facts.files import MissingKey
from kthena_components.core.facts.network import NO_VARIABLES, Variables
from kthena_components.core.facts.routing_sidecar import RoutingSidecar
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Image, read_image
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, is_known, total

__all__ = ["DeviceFacts", "PodFacts"]


class MetadataField(NamedTuple):
    """A variable that a container takes from a label or an annotation of its pod."""

    name: str
    part: str
    """`labels` or `annotations`."""
    key: str
    path: str
    """Where the manifest states that."""

    @property
    def field(self) -> str:
        """Its path, as `metadata.labels['app']`."""
        paths = {"labels": naming.label_field, "annotations": naming.annotation_field}
        return paths[self.part](self.key)


TPU = "google.com/tpu"
_SEVERAL_VENDORS = Unknown("its container requests the GPUs of several vendors")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One pod template."""

    devices: tuple[DeviceFacts, ...]
    command: CommandFacts | None
    gpus_path: str = field(compare=False)
    command_path: str = field(compare=False)
    flags_path: str = field(default="", compare=False)
    """Path of the options that a user adds to a command line which the package writes."""
    container: str | None = None
    """Name of the container with the command. None: there is no command."""
    joined: CommandFacts | None = field(default=None, compare=False)
    """The command line of a pod that joins an engine of another object: `command` has no sizes."""
    gap: Unknown | None = None
    """Why a command may exist that could not be read."""
    own: ContainerFacts | None = None
    """The container with the command."""
    others: tuple[ContainerFacts, ...] = ()
    """The other containers, including init containers, except those that start other engines."""
    gpu: GpuFacts | Unknown | None = None
    """The GPU that the pod's placement states, or its MIG devices. None: not stated."""
    parted: Unknown | None = None
    """Why an engine sees several devices in one accelerator. None: it sees one."""
    shape: ModelShape | Unknown | None = None
    """Shape of the model that the object or the caller states. None: look it up by name."""
    downloaded: ModelShape | None = field(default=None, compare=False)
    """The model that an init container writes to the folder which the command line names."""
    sees_more: Unknown | None = None
    """Why the container with the command may see other GPUs than its own. None: it sees its own."""
    claimed: Unknown | None = None
    """Why that container may get more accelerators than it requests. None: it does not."""
    sliced: Unknown | None = None
    """Why its accelerators may be fewer devices than it requests. None: each is a device."""
    on_cpus: MaybeBool = False
    """Whether the engine runs on CPUs: facts/devices.py."""
    on_host: bool = False
    """Whether it has the network of its node, whose loopback address other such pods share."""
    cluster_names: MaybeBool = True
    """Whether it asks the cluster's DNS server: not on the host's network with the usual policy."""
    variables: Variables = field(default_factory=lambda: NO_VARIABLES, compare=False)
    """Variables about the network, by name."""
    stated: frozenset[str] = field(default=frozenset(), compare=False)
    """The names of the variables in its container's env."""
    service_links: bool = True
    """Whether Kubernetes may set variables for the Services of its namespace."""
    offline: str = ""
    """The variable that forbids the download of a model, if nothing else may bring one."""
    from_metadata: tuple[MetadataField, ...] = field(default=(), compare=False)
    """Variables of its container from labels and annotations that the template does not state."""
    engine_variables: Variables = field(default_factory=lambda: NO_VARIABLES, compare=False)
    """Those of engines, NCCL and Ray that nothing else in the container mentions."""
    idle: str = ""
    """The command of the only container if it does nothing, ever: `sleep infinity`."""
    idle_branch: str = ""
    """The same in one of the two branches of which its script consists."""
    missing: tuple[MissingKey, ...] = ()
    """Keys that the pod's containers use and their ConfigMaps do not have."""

    @property
    def gpus(self) -> MaybeInt:
        """Accelerators of the engine's container, which cannot use those of other containers."""
        devices = self.own_devices
        own = _sum(devices)
        starts = self.command is not None and self.command.engine is not None
        if starts and len(devices) > 1 and len(self.vendors) > 1:
            return _SEVERAL_VENDORS
        return self.parted if own and self.parted else own

    @property
    def image(self) -> Image | None:
        """The image of the container with the command, with what that installs. None: unknown."""
        if self.command is not None and self.command.image is not None:
            return self.command.image
        name = None if self.own is None else self.own.image
        return read_image(name) if isinstance(name, str) else None

    @property
    def template(self) -> str:
        """Path of its template, or of the part of the object that stands for its only container."""
        if self.own is None:
            return self.command_path
        above, _, last = self.own.path.rpartition(".")
        return above if "ontainers[" in last else self.own.path

    @property
    def sidecar(self) -> RoutingSidecar | None:
        """The routing sidecar of the pod. None: there is none, or its ports are not known."""
        return self.own.ports.sidecar if self.own is not None else None

    @property
    def vendors(self) -> Mapping[str, str]:
        """The vendors of the accelerators of the engine's container, each with a resource."""
        own = self.own_devices
        return {d.vendor: d.resource for d in own if d.vendor and is_known(d.count) and d.count}

    @property
    def all_gpus(self) -> MaybeInt:
        """Accelerators of the pod: the sum over its containers."""
        return _sum(self.devices)

    @property
    def own_devices(self) -> list[DeviceFacts]:
        """The devices of the container with the command; of all containers without one."""
        return [d for d in self.devices if self.container in {None, d.container}]

    @property
    def one_process(self) -> MaybeBool:
        """Whether one process serves all accelerators of the pod, without NCCL: TPUs, Neuron.

        Source: tpu-inference tpu_inference/platforms/tpu_platform.py; vllm/platforms/neuron.py and
        vllm-neuron's platform.py, which choose the executor `uni`.
        """
        own = self.own_devices
        if any(d.resource == TPU or d.resource.startswith(NEURON) for d in own):
            return True
        late = next((d.limit for d in own if d.late), None)
        return late if isinstance(late, Unknown) else False

    @property
    def has_cuda(self) -> bool:
        """Whether each accelerator of the engine is one of NVIDIA's, as far as is known."""
        own = [d.resource for d in self.own_devices]
        return all(name.startswith("nvidia.com/") for name in own if is_accelerator(name))

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The accelerator resources that its containers name."""
        return tuple(d.resource for d in self.devices if is_accelerator(d.resource))

    @property
    def asks_for_gpus(self) -> bool:
        """Whether a container names an accelerator resource."""
        return bool(self.accelerators)


def _sum(devices: Iterable[DeviceFacts]) -> MaybeInt:
    """Add up devices. Containers of a pod that name one claim have the same ones."""
    counts: dict[object, MaybeInt] = {}
    for number, device in enumerate(devices):
        counts[device.claim or number] = device.count
    return total(counts.values())
