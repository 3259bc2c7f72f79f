"""Engines of the Helm chart llm-d-modelservice: decode and prefill.

The chart writes --tensor-parallel-size and the data sizes from `parallelism`, before the args of
the container. Where resources state no GPUs, it requests tensor × dataLocal; up to 0.3.16 also
where they do. So a contradiction is in GPUs that are stated, in args that state another size, or in
data without dataLocal: its default is 1, and the chart passes no --data-parallel-size-local of 1.
From 0.3.0 to 0.3.5 it requests tensor GPUs, and writes no data sizes; before, it reads the sizes of
the args from another place, and is not read. With `multinode` each half is a LeaderWorkerSet of
`workers` pods with the same template, before 0.3.6 of `data` pods. Source:
llm-d-incubation/llm-d-modelservice charts/llm-d-modelservice/templates/_helpers.tpl (numWorkers,
numGpuPerWorker, resources) and decode-lws.yaml, of llm-d-modelservice-v0.3.0 to v0.4.12.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.facts.workload import fill_requests, relocated
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import (
    count_or_unknown,
    mapping,
    sequence,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.unknown import UNKNOWN_WORD, MaybeInt, Unknown
from kthena_components.core.values.values_in_text import go_text
from kthena_components.systems.vllm_stack.view import ChartValues

_ROLES = ("decode", "prefill")
_SIMULATOR = "llm-d-inference-sim"
_FIRST, _DATA, _SIZES_STATED, _STATED_WINS = (0, 3, 0), (0, 3, 6), (0, 3, 14), (0, 3, 17)
"""The first release that is read, the first that passes the data sizes, the first whose values.yaml
states all sizes as 1, and the first that keeps the GPUs that resources state."""
_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel-gaudi": "habana.ai/gaudi"}
"""Types of accelerators that ranks do not share: each has a whole one. A TPU may hold two."""
_FLAGS = {
    "tensor": "--tensor-parallel-size",
    "data": "--data-parallel-size",
    "dataLocal": "--data-parallel-size-local",
}


def engines(release: ChartValues, context: Context) -> Iterator[EngineFacts]:
    """Read the engines of a release."""
    values = mapping(release.values)
    version = _STATED_WINS if release.version is None else release.version
    if isinstance(version, Unknown) or version < _FIRST:
        return
    for name in _ROLES:
        fields = mapping(values.get(name))
        for index, item in enumerate(sequence(fields.get("containers"))):
            if fields.get("create") is not False and _SIMULATOR not in str(item):
                at = f"{release.path}.{name}"
                yield _engine(name, _Engine(release, at, index, fields, mapping(item)), context)


@dataclass(frozen=True, slots=True)
class _Engine:
    """One container of decode or prefill."""

    release: ChartValues
    path: str
    index: int
    role: Mapping[str, Any]
    container: Mapping[str, Any]

    def size(self, name: str) -> MaybeInt:
        """Return a size of `parallelism`. The chart's default is 1, or up to 0.3.13 derived."""
        stated = mapping(self.role.get("parallelism"))
        if self.release.beside and name not in stated:
            return Unknown(f"{name} may be in other values")
        if (
            self.is_before(_SIZES_STATED)
            and not self.is_before(_DATA)
            and name not in stated
            and {"data", "dataLocal"} & {*stated}
        ):
            return Unknown(f"the chart derives {name} from other sizes")
        return count_or_unknown(stated.get(name), name, 1)

    @property
    def pods(self) -> MaybeInt:
        """Return the number of pods of one copy."""
        multinode = mapping(self.release.values).get("multinode", False)
        if multinode is False and not self.release.beside:
            every, local = self.size("data"), mapping(self.role.get("parallelism")).get("dataLocal")
            if isinstance(every, int) and isinstance(local, int) and 1 < local < every:
                return Unknown("other copies of the engine may be elsewhere")
            return 1
        if multinode is not True:
            return Unknown("multinode is not known")
        stated = mapping(self.role.get("parallelism"))
        if self.is_before(_DATA):
            return self.size("data")
        if not self.is_before(_SIZES_STATED) or stated.get("workers"):
            return self.size("workers")
        return self._derived(stated)

    def _derived(self, stated: Mapping[str, Any]) -> MaybeInt:
        """Return the number of pods that data and dataLocal give."""
        if not {"data", "dataLocal"} <= {*stated}:
            return 1
        every, local = self.size("data"), self.size("dataLocal")
        if isinstance(every, Unknown) or isinstance(local, Unknown):
            return Unknown("the chart derives workers from other sizes")
        return every // local if local else 1

    def is_before(self, version: Version) -> bool:
        """Return whether the release of the chart is older than another one."""
        return isinstance(self.release.version, tuple) and self.release.version < version

    @property
    def resources(self) -> object:
        """Its resources, with the GPUs that the chart adds where none are stated."""
        stated = self.container.get("resources")
        factors = ("tensor",) if self.is_before(_DATA) else ("tensor", "dataLocal")
        gpu, gpus = self.gpu, [self.size(name) for name in factors]
        if not gpu or unknown_within(stated):
            return UNKNOWN_WORD
        replaced = self.is_before(_STATED_WINS)
        if gpu in mapping(mapping(stated).get("limits")) and not replaced:
            return stated
        if any(isinstance(size, Unknown) for size in gpus):
            return UNKNOWN_WORD
        added = {gpu: prod(size for size in gpus if isinstance(size, int))}
        return {
            key: {**own, **added} if replaced else {**added, **own}
            for key in ("limits", "requests")
            for own in [mapping(mapping(stated).get(key))]
        }

    @property
    def gpu(self) -> str:
        """The resource that it requests; empty if that is not known."""
        given = mapping(mapping(self.release.values).get("accelerator"))
        kind = given.get("type", "nvidia")
        if self.release.beside or given.get("dra") or given.get("resources"):
            return ""
        return _RESOURCES.get(kind, "") if isinstance(kind, str) else ""

    @property
    def command(self) -> dict[str, Any]:
        """Its command and args, limited to what is checked here."""
        by, own = self.container.get("modelCommand"), self.container.get("args")
        if by not in ("vllmServe", "imageDefault"):
            return {key: self.container.get(key) for key in ("command", "args")}
        words = [] if by == "vllmServe" else ["--model"]
        words.append(_model(mapping(mapping(self.release.values).get("modelArtifacts"))))
        words += ["--port", go_text(self.port)]
        for name, flag in list(_FLAGS.items())[: 1 if self.is_before(_DATA) else None]:
            if (size := self.size(name)) != 1:
                words += [flag, _word(size)]
        if unknown_within(own):
            words += [UNKNOWN_WORD, UNKNOWN_WORD]
        words += map(go_text, sequence(own))
        return {"args": words, **({"command": ["vllm", "serve"]} if by == "vllmServe" else {})}

    @property
    def port(self) -> object:
        """The port of the server: before decode is a proxy, unless it is switched off."""
        routing = mapping(mapping(self.release.values).get("routing"))
        proxy = mapping(routing.get("proxy"))
        if self.path.endswith(_ROLES[0]) and proxy.get("enabled") is not False:
            return proxy.get("targetPort", 8200)
        return routing.get("servicePort", 8000)

    @property
    def env(self) -> object:
        """Its variables, with those that the chart adds."""
        own = self.container.get("env")
        added = {"DP_SIZE": "data", "TP_SIZE": "tensor", "DP_SIZE_LOCAL": "dataLocal"}
        return unknown_in(own) or [
            *sequence(own),
            *({"name": name, "value": _word(self.size(size))} for name, size in added.items()),
        ]

    def at(self, place: str) -> str:
        """Return a path of the role's values, or of the parameter that sets a value there."""
        own = f"{self.path}.{place}"
        name = own.removeprefix(f"{self.release.path}.")
        inside = (at for key, at in self.release.overridden.items() if key.startswith(name))
        return next(inside, own)


def _engine(name: str, engine: _Engine, context: Context) -> EngineFacts:
    """Read an engine of the chart, whose template adds the options of its parallelism."""
    given = engine.container
    container = {
        "name": given.get("name") or "vllm",
        **{key: given[key] for key in ("image", "volumeMounts") if key in given},
        "env": engine.env,
        **engine.command,
        "resources": engine.resources,
    }
    own = f"containers[{engine.index}]"
    stated = engine.resources is given.get("resources")
    pod = read_pod(
        {"spec": {"containers": [container], "volumes": engine.role.get("volumes")}},
        "",
        context=context,
        gpus_path=engine.at(f"{own}.resources" if stated else "parallelism"),
        command_path=engine.at("parallelism"),
    )
    pods = engine.pods
    entry = fill_requests(placed(pod, f"{engine.path}.{own}", image=engine.at(f"{own}.image")))
    return EngineFacts(
        path=engine.path,
        name=name,
        pods=pods,
        replicas=count_or_unknown(engine.role.get("replicas"), "replicas", 1),
        entry=entry,
        worker=None if pods == 1 else entry,
    )


def _word(size: MaybeInt) -> str:
    return UNKNOWN_WORD if isinstance(size, Unknown) else str(size)


def _model(artifacts: Mapping[str, Any]) -> str:
    """Return the model that the chart passes: of Hugging Face, or a folder of a volume."""
    uri, name = artifacts.get("uri"), artifacts.get("name")
    if not isinstance(uri, str) or not uri.startswith("hf://"):
        return "/model-cache"
    model = uri.removeprefix("hf://").strip('"')
    return str(name) if "{{" in model else model


_MADE = "spec.containers[0]"
"""Path of the engine's container in the pod that is read."""


def placed(pod: PodFacts, path: str, *, image: str) -> PodFacts:
    """Return the facts of a pod of one container, with its paths in the values.

    Args:
        pod: The facts, read from a pod with the container alone.
        path: The values from which the chart makes the container.
    """
    pod = relocated(pod, lambda at: at.replace(_MADE, path, 1))
    return replace(pod, own=pod.own and replace(pod.own, image_path=image))
