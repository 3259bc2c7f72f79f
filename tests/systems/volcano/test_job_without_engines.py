"""Volcano Jobs that serve nothing: MPI, PyTorch and Ray as Volcano's guides have them."""

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from tests.support.specs import REMOVED, Args, changed
from tests.systems.volcano.test_job_facts import CLIENT, RAY_WORKER, SSHD, WORLD, job, task

TRAINING: dict[str, Args] = {
    "mpi": job(
        task("mpimaster", "mpiexec --host $MPI_HOST -np 16 python train.py", gpus=0),
        task("mpiworker", SSHD, 2),
        minAvailable=3,
        plugins={"mpi": ["--master=mpimaster", "--worker=mpiworker", "--port=22"], "ssh": []},
    ),
    "mpi-in-order": changed(
        job(task("master", "mpiexec -np 2 hello"), task("worker", SSHD, 2), minAvailable=1),
        {"spec.tasks[0].dependsOn": {"name": ["worker"]}},
    ),
    "pytorch": job(
        task("master", "torchrun --nnodes 3 --nproc-per-node 8 train.py"),
        task("worker", "torchrun --nnodes 3 --nproc-per-node 8 train.py", 2),
        plugins={"pytorch": []},
    ),
    "ray": job(task("head", "ray start --head && python tune.py"), task("worker", RAY_WORKER, 3)),
    "ray-plugin": job(
        {**CLIENT, "name": "head"}, {**CLIENT, "name": "worker"}, plugins={"ray": []}
    ),
    "offline": job(task("batch", "python -c 'import vllm'", 4)),
    "client": job(task("bench", "vllm bench serve --model m", gpus=0)),
}


@pytest.mark.parametrize("body", TRAINING.values(), ids=TRAINING)
def test_a_job_without_engines_is_let_alone(body: Args) -> None:
    """Pods with GPUs whose command is not read are told as such, and nothing else is."""
    assert [str(f) for f in check_manifest(body) if f.level is Level.MANDATORY] == []
    spoken = {f.rule for f in check_manifest(body)} - {WORLD}
    assert spoken == set()
    bare = [
        {**part, "template": changed(part["template"], {"spec.containers[0].resources": REMOVED})}
        for part in body["spec"]["tasks"]
        if part["template"]["spec"]["containers"][0].get("resources")
    ]
    assert check_manifest(changed(body, {"spec.tasks": bare or body["spec"]["tasks"]})) == []
