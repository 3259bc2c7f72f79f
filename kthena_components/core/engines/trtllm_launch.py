"""Writes TensorRT-LLM's command lines. trtllm.py reads them.

Over several pods, MPI starts one rank per GPU, and trtllm-llmapi-launch connects the ranks. Open
MPI reaches other hosts through a program, the agent, which is usually ssh. Here the agent writes
down the command that a host must run, and each worker fetches its own from the entry: no keys, no
sshd, no rights in the cluster, and a worker needs no address.
"""

from collections.abc import Iterator

from kthena_components.core.engines.launch import (
    Commands,
    Launch,
    Refusal,
    port_clash,
    script,
)
from kthena_components.core.engines.programs import RANK_LAUNCHER
from kthena_components.core.remedies import either, remove, write

LAUNCH_PORT = 29400
"""Port on which workers fetch their command. Any free port."""
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - trtllm-serve's default is the pod's own loopback
_AGENT = 'd=${0%/*}; h=$1; shift; printf %s "$*" >"$d/.$h" && mv "$d/.$h" "$d/$h"'
"""Writes the command of a host to a file of the host's name, whole or not at all."""
_PREPARE = f"""\
d=$(mktemp -d)
printf '%s\\n' '#!/bin/sh' '{_AGENT}' >"$d/agent"
chmod +x "$d/agent"
export OMPI_MCA_plm_rsh_agent="$d/agent" OMPI_MCA_plm_rsh_no_tree_spawn=1
export PRTE_MCA_plm_ssh_agent="$d/agent" PRTE_MCA_plm_ssh_no_tree_spawn=1
python3 -m http.server {LAUNCH_PORT} --directory "$d" &
"""
"""Variables of Open MPI 4 (orte/mca/plm/rsh), then of Open MPI 5 (PRRTE's plm/ssh)."""
_FETCH = (
    "import http.client as h; "
    f'c = h.HTTPConnection("$(ENTRY_ADDRESS)", {LAUNCH_PORT}, timeout=5); '
    'c.request("GET", "/worker-$(WORKER_INDEX)"); r = c.getresponse(); '
    "print(r.read().decode()); raise SystemExit(r.status != 200)"
)
_JOIN = f"""\
trap 'exit 143' TERM
until c=$(python3 -c '{_FETCH}' 2>/dev/null); do sleep 1; done
sh -c "$c" & wait $!
"""
"""A shell that is process 1 of a pod ignores TERM unless it has a trap."""


def write_trtllm(launch: Launch) -> Commands:
    """Write the commands of a launch that `unsupported_trtllm` accepts."""
    words = ["trtllm-serve", launch.model, "--host", _EVERYWHERE, "--port", str(launch.port)]
    words += ["--tp_size", str(launch.tensor), "--pp_size", str(launch.pipeline)]
    words += ["--ep_size", str(launch.tensor)] if launch.expert else []
    serve, http = (*words, *launch.extra_args), ("http", launch.port)
    if launch.pods == 1:
        return Commands(serve, None, (http,))
    entry = f"{_PREPARE}exec {script(*_mpirun(launch), RANK_LAUNCHER, *serve)}"
    ports = (http, ("launch", LAUNCH_PORT))
    return Commands(("sh", "-c", entry), ("sh", "-c", _JOIN), ports)


def _mpirun(launch: Launch) -> tuple[str, ...]:
    """Write mpirun with literal numbers: readers of the manifest can compare them with the pods."""
    here = launch.copy // launch.pods
    hosts = ["localhost", *(f"worker-{index}" for index in range(1, launch.pods))]
    return (
        # An attached session: otherwise the worker's command returns while its ranks run.
        *("mpirun", "--allow-run-as-root", "--leave-session-attached", "--bind-to", "none"),
        *("-n", str(launch.copy), "--map-by", f"ppr:{here}:node"),
        *("-H", ",".join(f"{host}:{here}" for host in hosts)),
    )


def unsupported_trtllm(launch: Launch) -> list[Refusal]:
    """Report what `write_trtllm` cannot express. GPU counts are not checked here."""
    return [*port_clash(launch, LAUNCH_PORT, "MPI launch"), *_refused(launch)]


def _refused(launch: Launch) -> Iterator[Refusal]:
    if launch.launcher != "mpi":
        seen = f"is '{launch.launcher}', and the pods of TensorRT-LLM are joined by MPI"
        yield Refusal("launcher", seen, either(write("mpi"), remove()), "engine-launch")
    if launch.transfer is not None:
        seen = "is given, and TensorRT-LLM reads how its KV cache is transferred from a file"
        remedy = "remove it, and set cache_transceiver_config in the file of --config"
        yield Refusal("kv_transfer", seen, remedy, "kv-transfer-supported")
    if launch.data > 1:
        seen = f"is {launch.data}, and an engine of TensorRT-LLM holds one copy of the model"
        remedy = write(1, "set data to 1 and use more replicas of the role")
        yield Refusal("parallelism.data", seen, remedy, "engine-launch")
    if launch.copy % launch.pods:
        seen = (
            f"has tensor {launch.tensor} x pipeline {launch.pipeline} = {launch.copy} GPUs, which "
            f"do not spread evenly over {launch.pods} pods"
        )
        remedy = f"make tensor x pipeline a multiple of {launch.pods}"
        yield Refusal("parallelism", seen, remedy, "engine-launch")
    if launch.pods > 1:
        yield from _split_words(launch)


def _split_words(launch: Launch) -> Iterator[Refusal]:
    """Reject words that trtllm-llmapi-launch would split: it joins its arguments with spaces."""
    given = [("model", launch.model), *(("extra_args", word) for word in launch.extra_args)]
    for field, word in given:
        if len(word.split()) != 1:
            seen = f"has the word {word!r}, which {RANK_LAUNCHER} would split at its spaces"
            remedy = "write it without spaces, or set it in the file of --config"
            yield Refusal(field, seen, remedy, "engine-launch")
