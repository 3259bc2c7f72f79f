"""vLLM: the command lines that start it. What a command line says is read in vllm.py."""

from kthena_components.core.engines.launch import Commands, Launch, Refusal, port_clash, script

RAY_SCRIPT = "/vllm-workspace/examples/online_serving/multi-node-serving.sh"
"""Where vLLM's images keep the script that starts or joins a Ray cluster."""
RAY_PORT = 6379
MASTER_PORT = 29501
"""Default of `--master-port` (vllm/config/parallel.py)."""
DATA_RPC_PORT = 13345
"""Where the ranks of a data parallel engine meet. Any free port; vLLM's own default is 29550."""


def write_vllm(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_vllm` does not refuse.

    Only sizes above 1 are stated, except tensor and pipeline, which a reader should always see.
    """
    http = ("http", launch.port)
    if launch.pods == 1:
        shape = _data(launch) + _executor(launch)
        return Commands(_serve(launch, *shape), None, (http,))
    if launch.launcher == "ray":
        return _write_ray(launch, http)
    if launch.data > 1:
        return _write_data_parallel(launch, http)
    shape = ("--nnodes", str(launch.pods), "--node-rank", "$(WORKER_INDEX)")
    shape += ("--master-addr", "$(ENTRY_ADDRESS)", "--master-port", str(MASTER_PORT))
    shape += ("--distributed-executor-backend", "mp")
    worker = _serve(launch, *shape, "--headless")
    return Commands(_serve(launch, *shape), worker, (http, ("master", MASTER_PORT)))


def _write_ray(launch: Launch, http: tuple[str, int]) -> Commands:
    local = ("--data-parallel-size-local", str(launch.data // launch.pods))
    shape = (*_data(launch), *local, "--data-parallel-backend", "ray") if launch.data > 1 else ()
    serve = _serve(launch, *shape, "--distributed-executor-backend", "ray")
    # A literal number: who reads the manifest can compare it with the pods.
    leader = script("bash", RAY_SCRIPT, "leader", f"--ray_cluster_size={launch.pods}")
    worker = ("bash", RAY_SCRIPT, "worker", "--ray_address=$(ENTRY_ADDRESS)")
    entry = ("sh", "-c", f"{leader} && exec {script(*serve)}")
    return Commands(entry, worker, (http, ("ray", RAY_PORT)))


def _write_data_parallel(launch: Launch, http: tuple[str, int]) -> Commands:
    """Write a launch whose copies lie within pods: as many in each, numbered pod by pod."""
    local = launch.data // launch.pods
    shape = [*_data(launch), "--data-parallel-size-local", str(local)]
    shape += ["--data-parallel-address", "$(ENTRY_ADDRESS)"]
    shape += ["--data-parallel-rpc-port", str(DATA_RPC_PORT), *_executor(launch)]
    worker = script(*_serve(launch, *shape, "--headless"))
    # Kubernetes cannot multiply, so the shell does.
    rank = f"--data-parallel-start-rank $((WORKER_INDEX * {local}))"
    return Commands(
        _serve(launch, *shape),
        ("sh", "-c", f"exec {worker} {rank}"),
        (http, ("dp-rpc", DATA_RPC_PORT)),
    )


def _serve(launch: Launch, *shape: str) -> tuple[str, ...]:
    words = ["vllm", "serve", launch.model, "--port", str(launch.port)]
    words += ["--tensor-parallel-size", str(launch.tensor)]
    words += ["--pipeline-parallel-size", str(launch.pipeline)]
    words += ["--enable-expert-parallel"] if launch.expert else []
    return (*words, *shape, *launch.extra_args)


def _data(launch: Launch) -> tuple[str, ...]:
    return ("--data-parallel-size", str(launch.data)) if launch.data > 1 else ()


def _executor(launch: Launch) -> tuple[str, ...]:
    several = launch.tensor * launch.pipeline > 1
    return ("--distributed-executor-backend", "mp") if several else ()


def unsupported_vllm(launch: Launch) -> list[Refusal]:
    """Say what `write_vllm` cannot express. Counts of GPUs are not judged here."""
    if launch.launcher not in {"ray", "native"}:
        seen = f"is '{launch.launcher}', and the pods of vLLM are joined by ray or native"
        return [Refusal("launcher", seen, "write 'ray' or 'native'", "engine-launch")]
    if launch.launcher == "ray":
        refusals = port_clash(launch, RAY_PORT, "Ray")
    elif launch.data > 1:
        refusals = port_clash(launch, DATA_RPC_PORT, "data parallel RPC")
    else:
        refusals = port_clash(launch, MASTER_PORT, "--master-port")
    copy = launch.tensor * launch.pipeline
    if launch.pods == 1 or launch.data == 1:
        return refusals
    if copy > launch.gpus_per_pod:
        seen = (
            f"is {launch.data}, and one copy has tensor {launch.tensor} x pipeline "
            f"{launch.pipeline} = {copy} GPUs, more than the {launch.gpus_per_pod} of a pod; "
            "several copies that each span pods are not written"
        )
        remedy = "set data to 1, or tensor x pipeline to what one pod has"
        refusals.append(Refusal("parallelism.data", seen, remedy, "data-parallel-layout"))
    elif launch.data % launch.pods:
        seen = f"is {launch.data}, which does not spread evenly over {launch.pods} pods"
        remedy = f"set data to a multiple of {launch.pods}"
        refusals.append(Refusal("parallelism.data", seen, remedy, "data-parallel-layout"))
    return refusals
