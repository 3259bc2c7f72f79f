"""Writes SGLang's command lines. sglang.py reads them."""

from collections.abc import Mapping

from kthena_components.core.engines.kv_transfer import (
    refused_transfer,
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
)
from kthena_components.core.remedies import write
from kthena_components.core.values.images import Version

IMAGE = "lmsysorg/sglang"
INIT_PORT = 20000
"""Port that connects the pods of an engine. Any free port: `--dist-init-addr` has no default."""
PIPELINE_SINCE: Version = (0, 4, 6, 2)
"""The first SGLang with pipeline parallelism (--pp-size)."""
EXPERT_SIZE_ALONE: Version = (0, 4, 10, 2)
"""The first SGLang in which --ep-size alone enables expert parallelism. Before, the switch
--enable-ep-moe does (sglang/srt/layers/moe/ep_moe/layer.py), which 0.5.3 rejects.
"""
_SINCE: Mapping[str, Since] = {
    "--pp-size": Since(PIPELINE_SINCE, "parallelism.pipeline", "set pipeline to 1"),
}
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - SGLang's default is the pod's own loopback


def write_sglang(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_sglang` accepts.

    Every pod runs the same command and reads its rank from WORKER_INDEX.
    """
    words = ["python3", "-m", "sglang.launch_server", "--model-path", launch.model]
    words += ["--host", _EVERYWHERE, "--port", str(launch.port)]
    words += ["--tp-size", str(launch.tensor)]
    if launch.pipeline > 1 or not launch.before(PIPELINE_SINCE):
        words += ["--pp-size", str(launch.pipeline)]
    if launch.data > 1:
        words += ["--dp-size", str(launch.data)]
    if launch.expert:
        words += ["--ep-size", str(launch.tensor)]
        words += ["--enable-ep-moe"] if launch.before(EXPERT_SIZE_ALONE) else []
    words += transfer_words(launch.kind, launch.transfer)
    shared = transfer_ports(launch)
    if launch.pods == 1:
        return Commands((*words, *launch.extra_args), None, (("http", launch.port), *shared))
    words += ["--nnodes", str(launch.pods), "--node-rank", "$(WORKER_INDEX)"]
    words += ["--dist-init-addr", f"$(ENTRY_ADDRESS):{INIT_PORT}"]
    command = (*words, *launch.extra_args)
    ports = (("http", launch.port), ("dist-init", INIT_PORT), *shared)
    return Commands(command, command, ports)


def unsupported_sglang(launch: Launch) -> list[Refusal]:
    """Report what SGLang itself rejects, and `write_sglang` cannot express.

    Source: sglang/srt/arg_groups/parallel_hook.py, the assertions on nnodes.
    """
    refusals = port_clash(launch, INIT_PORT, "--dist-init-addr")
    used = {INIT_PORT: "--dist-init-addr"} if launch.pods > 1 else {}
    refusals += refused_transfer(launch, {launch.port: "HTTP", **used})
    if launch.launcher != "native":
        seen = f"is '{launch.launcher}', and the pods of SGLang join by themselves"
        refusals.append(Refusal("launcher", seen, write("native"), "engine-launch"))
    if launch.pods > 1 and launch.data > 1:
        seen = f"is {launch.data} over {launch.pods} pods, and SGLang has data 1 across pods"
        remedy: str = write(1, "set data to 1 and use more replicas of the role")
        refusals.append(Refusal("parallelism.data", seen, remedy, "sglang-data-multi-node"))
    if launch.copy % launch.pods:
        seen = (
            f"has tensor {launch.tensor} x pipeline {launch.pipeline} = {launch.copy} GPUs, which "
            f"SGLang cannot spread evenly over {launch.pods} pods"
        )
        remedy = f"make tensor x pipeline a multiple of {launch.pods}"
        refusals.append(Refusal("parallelism", seen, remedy, "engine-launch"))
    return refusals + missing_options(launch, write_sglang(launch), _SINCE, "SGLang", IMAGE)
