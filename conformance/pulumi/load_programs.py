"""The Pulumi programs of the load test: many servings, with the package or as raw objects."""

import json
import os
import resource
from importlib import import_module
from pathlib import Path
from typing import Any, cast

JOB = "CROWD_JOB"
"""Environment variable with the job, as JSON."""
GROUPS, PODS = 2, 4
"""Groups per serving, and pods per group."""
NAMESPACE = "serving"


def main() -> None:
    """Run one of the programs inside Pulumi, and record its memory."""
    job = json.loads(os.environ[JOB])
    recording = Path(job["recording"])
    if job["program"] == "raw":  # it must not pay for anything of ours
        import_module("bench.recording").replay(recording)
    elif job["program"] == "record":
        import_module("bench.recording").record(lambda: deploy(job), recording)
    else:
        deploy(job)
    used = resource.getrusage(resource.RUSAGE_SELF)
    said = {"mib": used.ru_maxrss / 1024, "cpu": used.ru_utime + used.ru_stime}
    Path(job["usage"]).write_text(json.dumps(said))


def deploy(job: dict[str, Any]) -> None:
    """Register the servings like a user's program."""
    import pulumi  # noqa: PLC0415 - only inside Pulumi

    from kthena_components import ModelServing  # noqa: PLC0415
    from kthena_components.resources._access import provider_version  # noqa: PLC0415

    version = pulumi.ResourceOptions(version=provider_version())
    properties = {"kubeconfig": job["kubeconfig"]}
    provider = pulumi.ProviderResource("kubernetes", "cluster", properties, version)
    options = pulumi.ResourceOptions(provider=provider)
    for number in range(job["servings"]):
        ModelServing(f"crowd-{number}", cast("Any", serving(number)), options)


def serving(number: int) -> dict[str, Any]:
    """Return the arguments of one serving, each with its own model."""
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": f"example/model-{number}",
        "parallelism": {"tensor": 1, "pipeline": PODS},
    }
    role = {
        "name": "serve", "worker_replicas": PODS - 1, "resources": {"gpus_per_pod": 1},
        "engine": engine,
    }  # fmt: skip
    return {
        "name": f"crowd-{number}", "namespace": NAMESPACE, "backend": "kthena",
        "replicas": GROUPS, "roles": [role],
    }  # fmt: skip
