"""Writes one engine on two pods, right or with a fault, for each system with leaders and workers.

The engine is right if each pod has the defaults of `Said`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Body = dict[str, Any]
Template = Mapping[str, Any]

MODEL = "meta-llama/Llama-3.1-405B-Instruct"
IMAGES = {
    "vllm": "vllm/vllm-openai:v0.14.0",
    "sglang": "lmsysorg/sglang:v0.5.9",
    "ray": "vllm/vllm-openai:v0.14.0",
}
"""Engines; `ray` is vLLM over Ray."""
_PORT = 20000


@dataclass(frozen=True, kw_only=True)
class Said:
    """What one pod states. None: the right value for its system and engine."""

    address: str | None = None
    port: int | str = _PORT
    """0: the address has no port."""
    nodes: str = "2"
    """Empty: no --nnodes."""
    rank: str | None = None
    """Empty: no --node-rank."""
    tensor: str = ""
    headless: bool | None = None
    blocks: bool = True
    """Whether `ray start` of the worker stays in the foreground."""
    before: str = ""
    """What the script of Ray's head runs first."""
    model: str = MODEL
    image: str = ""
    command: Sequence[str] = ()
    """Replaces the command that the fields above make."""
    options: Sequence[str] = ()
    gpus: int = 8
    gpu: str = "nvidia.com/gpu"
    container: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the container."""
    pod: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the pod."""


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The pods of the engine."""

    leader: Said
    worker: Said
    size: int = 2
    """Number of pods, the leader included."""


@dataclass(frozen=True)
class System:
    """A system, with what its workers write."""

    write: Callable[[Template, Template, int], list[Body]]
    address: str
    rank: str
    told: str = ""
    """The variable by which its controller names the first pod, if it has one."""


def written(system: System, engine: str, pods: Pods) -> list[Body]:
    """Return the objects of an engine on two pods."""
    leader = _template(system, engine, pods.leader, first=True)
    return system.write(leader, _template(system, engine, pods.worker, first=False), pods.size)


def _template(system: System, engine: str, said: Said, *, first: bool) -> Body:
    known = replace(
        said,
        address=system.address if said.address is None else said.address,
        rank=("0" if first else system.rank) if said.rank is None else said.rank,
        headless=not first if said.headless is None else said.headless,
    )
    command = _ray_worker if engine == "ray" and not first else _COMMANDS[engine]
    amount = {said.gpu: said.gpus}
    container = {
        "name": "engine",
        "image": said.image or IMAGES[engine],
        "command": list(said.command) or command(known),
        "resources": {"limits": amount, "requests": amount},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - of the pod
        **said.container,
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        **said.pod,
    }
    role = {"role": "leader"} if first else {}
    return {"metadata": {"labels": {"app": "m", **role}}, "spec": spec}


def _options(stated: Mapping[str, object]) -> list[str]:
    return [word for name, value in stated.items() if value for word in (name, str(value))]


def _vllm(said: Said) -> list[str]:
    words = ["vllm", "serve", said.model, "--pipeline-parallel-size", "2"]
    stated = {"--nnodes": said.nodes, "--node-rank": said.rank, "--master-port": said.port}
    words += _options({"--tensor-parallel-size": said.tensor or "8", **stated})
    words += ["--master-addr", str(said.address)]
    return [*words, *(["--headless"] if said.headless else []), *said.options]


def _sglang(said: Said) -> list[str]:
    words = ["python3", "-m", "sglang.launch_server", "--model-path", said.model]
    stated = {"--nnodes": said.nodes, "--node-rank": said.rank}
    words += _options({"--tp-size": said.tensor or "16", **stated})
    return [*words, "--dist-init-addr", _with_port(said), *said.options]


def _with_port(said: Said) -> str:
    return f"{said.address}:{said.port}" if said.port else str(said.address)


def _ray_head(said: Said) -> list[str]:
    serve = f"vllm serve {said.model} --tensor-parallel-size {said.tensor or '8'}"
    ray = "--pipeline-parallel-size 2 --distributed-executor-backend ray"
    head = f"{said.before}ray start --head --port={said.port}"
    return ["sh", "-c", " ".join([f"{head} && {serve} {ray}", *said.options])]


def _ray_worker(said: Said) -> list[str]:
    block = " --block" if said.blocks else ""
    return ["sh", "-c", f"ray start{block} --address={_with_port(said)}"]


_COMMANDS: Mapping[str, Callable[[Said], list[str]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "ray": _ray_head,
}


def _object(version: str, kind: str, spec: Mapping[str, Any], name: str = "m") -> Body:
    metadata = {"name": name, "namespace": "ns"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _lws(leader: Template, worker: Template, size: int) -> list[Body]:
    pods = {"size": size, "leaderTemplate": leader, "workerTemplate": worker}
    spec = {"replicas": 1, "leaderWorkerTemplate": pods}
    return [_object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)]


def _roles(version: str, kind: str) -> Callable[[Template, Template, int], list[Body]]:
    def write(leader: Template, worker: Template, size: int) -> list[Body]:
        role = {"name": "serve", "replicas": 1, "workerReplicas": size - 1}
        role |= {"entryTemplate": leader, "workerTemplate": worker}
        spec = {"schedulerName": "volcano", "replicas": 1, "template": {"roles": [role]}}
        return [_object(version, kind, spec)]

    return write


def _volcano(leader: Template, worker: Template, size: int) -> list[Body]:
    tasks = [
        {"name": name, "replicas": count, "template": _once(template)}
        for name, template, count in (("leader", leader, 1), ("worker", worker, size - 1))
    ]
    plugins = {"svc": ["--publish-not-ready-addresses=true"], "env": []}
    spec = {"minAvailable": 2, "schedulerName": "volcano", "plugins": plugins, "tasks": tasks}
    return [_object("batch.volcano.sh/v1alpha1", "Job", spec)]


def _once(template: Template) -> Body:
    return {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}


def _jobset(leader: Template, worker: Template, size: int) -> list[Body]:
    jobs = []
    for name, template, count in (("leader", leader, 1), ("worker", worker, size - 1)):
        counted = {"parallelism": count, "completions": count, "completionMode": "Indexed"}
        job = {**counted, "template": _once(template)}
        jobs.append({"name": name, "replicas": 1, "template": {"spec": job}})
    spec = {"network": {"enableDNSHostnames": True}, "replicatedJobs": jobs}
    return [_object("jobset.x-k8s.io/v1alpha2", "JobSet", spec)]


def _stateful_sets(leader: Template, worker: Template, size: int) -> list[Body]:
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "m"}}
    made = [_object("v1", "Service", service)]
    for name, template, count in (("leader", leader, 1), ("worker", worker, size - 1)):
        labels = {"app": "m", "role": name}
        spec = {
            "replicas": count,
            "serviceName": "m",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": {"labels": labels}},
        }
        made.append(_object("apps/v1", "StatefulSet", spec, name))
    return made


def _grove(leader: Template, worker: Template, size: int) -> list[Body]:
    cliques = [
        {
            "name": name,
            "labels": template["metadata"]["labels"],
            "spec": {"roleName": name, "replicas": count, "podSpec": template["spec"]},
        }
        for name, template, count in (("leader", leader, 1), ("worker", worker, size - 1))
    ]
    group = {"name": "engine", "cliqueNames": ["leader", "worker"]}
    template = {"cliques": cliques, "podCliqueScalingGroups": [group]}
    return [_object("grove.io/v1alpha1", "PodCliqueSet", {"replicas": 1, "template": template})]


def _rbg(leader: Template, worker: Template, size: int) -> list[Body]:
    patch = {"spec": {"containers": worker["spec"]["containers"]}}
    pattern = {"size": size, "template": leader, "workerTemplatePatch": patch}
    role = {"name": "serve", "replicas": 1, "leaderWorkerPattern": pattern}
    return [_object("workloads.x-k8s.io/v1alpha2", "RoleBasedGroup", {"roles": [role]})]


_OF_GROVE = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-leader-0.$(GROVE_HEADLESS_SERVICE)"
SYSTEMS: Mapping[str, System] = {
    "grove": System(_grove, _OF_GROVE, "1"),
    "jobset": System(_jobset, "m-leader-0-0.m", "1"),
    "kthena": System(
        _roles("workload.serving.volcano.sh/v1alpha1", "ModelServing"),
        "$(ENTRY_ADDRESS)",
        "$(WORKER_INDEX)",
        "ENTRY_ADDRESS",
    ),
    "lws": System(_lws, "$(LWS_LEADER_ADDRESS)", "$(LWS_WORKER_INDEX)", "LWS_LEADER_ADDRESS"),
    "matrixinfer": System(
        _roles("workload.matrixinfer.ai/v1alpha1", "ModelInfer"),
        "$(ENTRY_ADDRESS)",
        "$(WORKER_INDEX)",
        "ENTRY_ADDRESS",
    ),
    "rbg": System(
        _rbg, "$(RBG_LWP_LEADER_ADDRESS)", "$(RBG_LWP_WORKER_INDEX)", "LWS_LEADER_ADDRESS"
    ),
    "stateful sets": System(_stateful_sets, "leader-0.m", "1"),
    "volcano": System(_volcano, "m-leader-0.m", "1"),
}
