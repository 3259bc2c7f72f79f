"""Writes vLLM's command lines. vllm.py reads them."""

from collections.abc import Mapping
from dataclasses import replace

from kthena_components.core.engines.kv_transfer import (
    refused_transfer,
    transfer_env,
    transfer_ports,
    transfer_words,
)
from kthena_components.core.engines.launch import (
    Commands,
    Launch,
    Refusal,
    Since,
    missing_options,
    port_clash,
    release_name,
    script,
)
from kthena_components.core.engines.launchers import RAY_PORT
from kthena_components.core.findings import count_of
from kthena_components.core.values.images import Version, write_version

IMAGE = "vllm/vllm-openai"
RAY_SCRIPT = "/vllm-workspace/examples/ray_serving/multi-node-serving.sh"
"""Path in vLLM's images of the script that starts or joins a Ray cluster."""
OLD_RAY_SCRIPT = "/vllm-workspace/examples/online_serving/multi-node-serving.sh"
"""Its path before RAY_SCRIPT_MOVED."""
RAY_SCRIPT_SINCE: Version = (0, 8, 0)
RAY_SCRIPT_MOVED: Version = (0, 21, 0)
RAY_STOPS: Version = (0, 11, 1)
"""In this release, every worker of a Ray engine takes the ranks of all pods for its own pod's and
exits (vllm/v1/worker/gpu_worker.py init_device, local_world_size).
"""
RAY_STARTS_AGAIN: Version = (0, 11, 2)
NNODES_SINCE: Version = (0, 11, 1)
MASTER_PORT = 29501
"""Default of `--master-port` (vllm/config/parallel.py)."""
DATA_RPC_PORT = 13345
"""Port that connects the ranks of a data parallel engine. Any free port; vLLM's own default is
29550.
"""
DRAIN = "--shutdown-timeout"
DRAIN_SINCE: Version = (0, 18, 0)
"""Without it, vLLM aborts all requests at SIGTERM (vllm/engine/arg_utils.py)."""
_ONE_COPY = "set data to 1"
_SINCE: Mapping[str, Since] = {
    "--enable-expert-parallel": Since((0, 8, 0), "parallelism.expert", "set expert to false"),
    "--data-parallel-size": Since((0, 8, 3), "parallelism.data", _ONE_COPY),
    "--data-parallel-size-local": Since((0, 9, 0), "parallelism.data", _ONE_COPY),
    "--data-parallel-backend": Since((0, 9, 1), "parallelism.data", _ONE_COPY),
    "--nnodes": Since(NNODES_SINCE, "launcher", "launcher: ray"),
}
"""Options written here, and the first vLLM with each (vllm/engine/arg_utils.py). The others are no
newer than the option that they are written with, or older than 0.6.
"""


def write_vllm(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_vllm` accepts.

    Only sizes above 1 are written, except tensor and pipeline, which a reader should always see.
    """
    written = _write(launch)
    ports = (*written.ports, *transfer_ports(launch))
    return replace(written, ports=ports, env=transfer_env(launch.kind, launch.transfer))


def _write(launch: Launch) -> Commands:
    """Write the commands of entry and workers: one pod, Ray, data-parallel copies, or --nnodes."""
    http = ("http", launch.port)
    if launch.pods == 1:
        shape = _data(launch) + _executor(launch)
        return Commands(_serve(launch, *shape, *_drain(launch)), None, (http,))
    if launch.launcher == "ray":
        return _write_ray(launch, http)
    if launch.data > 1:
        return _write_data_parallel(launch, http)
    shape = ("--nnodes", str(launch.pods), "--node-rank", "$(WORKER_INDEX)")
    shape += ("--master-addr", "$(ENTRY_ADDRESS)", "--master-port", str(MASTER_PORT))
    shape += ("--distributed-executor-backend", "mp")
    worker = _serve(launch, *shape, "--headless")
    entry = _serve(launch, *shape, *_drain(launch))
    return Commands(entry, worker, (http, ("master", MASTER_PORT)))


def _write_ray(launch: Launch, http: tuple[str, int]) -> Commands:
    """Write the commands that start Ray with the image's script, and then vLLM in the entry."""
    local = ("--data-parallel-size-local", str(launch.data // launch.pods))
    at = OLD_RAY_SCRIPT if launch.before(RAY_SCRIPT_MOVED) else RAY_SCRIPT
    shape = (*_data(launch), *local, "--data-parallel-backend", "ray") if launch.data > 1 else ()
    serve = _serve(launch, *shape, "--distributed-executor-backend", "ray", *_drain(launch))
    # A literal number: readers of the manifest can compare it with the pods.
    leader = script("bash", at, "leader", f"--ray_cluster_size={launch.pods}")
    worker = ("bash", at, "worker", "--ray_address=$(ENTRY_ADDRESS)")
    entry = ("sh", "-c", f"{leader} && exec {script(*serve)}")
    return Commands(entry, worker, (http, ("ray", RAY_PORT)))


def _write_data_parallel(launch: Launch, http: tuple[str, int]) -> Commands:
    """Write a launch whose copies each fit into a pod: as many per pod, numbered by pod."""
    local = launch.data // launch.pods
    shape = [*_data(launch), "--data-parallel-size-local", str(local)]
    shape += ["--data-parallel-address", "$(ENTRY_ADDRESS)"]
    shape += ["--data-parallel-rpc-port", str(DATA_RPC_PORT), *_executor(launch)]
    worker = script(*_serve(launch, *shape, "--headless"))
    # Kubernetes cannot multiply, so the shell does.
    rank = f"--data-parallel-start-rank $((WORKER_INDEX * {local}))"
    return Commands(
        _serve(launch, *shape, *_drain(launch)),
        ("sh", "-c", f"exec {worker} {rank}"),
        (http, ("dp-rpc", DATA_RPC_PORT)),
    )


def _serve(launch: Launch, *shape: str) -> tuple[str, ...]:
    words = ["vllm", "serve", launch.model, "--port", str(launch.port)]
    words += ["--tensor-parallel-size", str(launch.tensor)]
    words += ["--pipeline-parallel-size", str(launch.pipeline)]
    words += ["--enable-expert-parallel"] if launch.expert else []
    return (*words, *shape, *transfer_words(launch.kind, launch.transfer), *launch.extra_args)


def _data(launch: Launch) -> tuple[str, ...]:
    return ("--data-parallel-size", str(launch.data)) if launch.data > 1 else ()


def _executor(launch: Launch) -> tuple[str, ...]:
    return ("--distributed-executor-backend", "mp") if launch.copy > 1 else ()


def writes_drain(launch: Launch) -> bool:
    """Return whether the commands state how long requests may take to end.

    Images of others state no release, and may have a vLLM that would reject the option.
    """
    stated = launch.release is not None and launch.release >= DRAIN_SINCE
    return launch.kind == "vllm" and launch.drain > 0 and stated


def _drain(launch: Launch) -> tuple[str, ...]:
    return (DRAIN, str(launch.drain)) if writes_drain(launch) else ()


def unsupported_vllm(launch: Launch) -> list[Refusal]:
    """Report what `write_vllm` cannot express. GPU counts are not checked here."""
    if launch.launcher not in {"ray", "native"}:
        seen = f"is '{launch.launcher}', and the pods of vLLM are joined by ray or native"
        return [Refusal("launcher", seen, "write 'ray' or 'native'", "engine-launch")]
    if launch.launcher == "ray":
        port, purpose, more = RAY_PORT, "Ray", _ray_by_release(launch)
    elif launch.data > 1:
        port, purpose, more = DATA_RPC_PORT, "data parallel RPC", []
    else:
        port, purpose, more = MASTER_PORT, "--master-port", []
    refusals = [*port_clash(launch, port, purpose), *more]
    used = {port: purpose} if launch.pods > 1 else {}
    refusals += refused_transfer(launch, {launch.port: "HTTP", **used})
    refusals += missing_options(launch, write_vllm(launch), _since(launch), "vLLM", IMAGE)
    return refusals + _copies_over_pods(launch)


def _since(launch: Launch) -> Mapping[str, Since]:
    if launch.before(RAY_SCRIPT_SINCE):  # Its image does not start Ray either.
        return {**_SINCE, "--nnodes": _SINCE["--nnodes"]._replace(remedy="")}
    return _SINCE


def _ray_by_release(launch: Launch) -> list[Refusal]:
    """Reject releases whose images cannot connect pods with Ray."""
    if launch.pods == 1 or launch.release is None:
        return []
    stated, first = release_name("vllm", launch.release), write_version(RAY_SCRIPT_SINCE)
    if launch.before(RAY_SCRIPT_SINCE):
        seen = (
            f"states vLLM {stated}, and the script that joins "
            f"{count_of(launch.pods, 'pod')} with Ray, "
            f"multi-node-serving.sh, is in its images since {first}"
        )
        return [Refusal("image", seen, f"use {IMAGE}:v{first} or later", "engine-launch")]
    if launch.release == RAY_STOPS and launch.copy > launch.gpus_per_pod:
        seen = (
            f"states vLLM {stated}, whose workers reject a copy of "
            f"{count_of(launch.copy, 'rank')} that Ray "
            f"spreads over pods of {count_of(launch.gpus_per_pod, 'GPU')}"
        )
        remedy = f"use {IMAGE}:v{write_version(RAY_STARTS_AGAIN)} or later, or launcher: native"
        return [Refusal("image", seen, remedy, "engine-launch")]
    return []


def _copies_over_pods(launch: Launch) -> list[Refusal]:
    """Refuse data-parallel copies that each span pods, or that spread unevenly over the pods."""
    if launch.pods == 1 or launch.data == 1:
        return []
    if launch.copy > launch.gpus_per_pod:
        seen = (
            f"is {launch.data}, and one copy has tensor {launch.tensor} x pipeline "
            f"{launch.pipeline} = {count_of(launch.copy, 'GPU')}, more than the "
            f"{launch.gpus_per_pod} of a "
            "pod; several copies that each span pods are not written"
        )
        remedy = "set data to 1, or tensor x pipeline to what one pod has"
        return [Refusal("parallelism.data", seen, remedy, "data-parallel-layout")]
    if launch.data % launch.pods:
        seen = f"is {launch.data}, which does not spread evenly over {count_of(launch.pods, 'pod')}"
        remedy = f"set data to a multiple of {launch.pods}"
        return [Refusal("parallelism.data", seen, remedy, "data-parallel-layout")]
    return []
