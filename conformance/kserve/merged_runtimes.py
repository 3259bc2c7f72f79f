"""Compares our merge of a runtime and an InferenceService with the Deployment that KServe makes."""

import copy
import json
import random
from typing import Any

from conformance.report import Part
from conformance.support.serving_lives import amounts
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.core.values.read import sequence
from kthena_components.systems.kserve.facts import merge

_PATIENCE = 120
_SPACE = "serving"
_GPU = "nvidia.com/gpu"
_ENGINE = "kserve-container"
_FLAGS = ("--tensor-parallel-size=2", "--max-model-len=4096", "--enforce-eager", "--seed=1")
_VOLUME = {"name": "shm", "emptyDir": {"medium": "Memory"}}
_MOUNT = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 - NCCL's memory
Body = dict[str, Any]


def compare_merged(part: Part, api: Cluster, rng: random.Random, number: int) -> None:
    """Create pairs of a runtime and an InferenceService that names it."""
    pairs = [_pair(rng, index) for index in range(number)]
    for pair in pairs:
        for body in pair:
            api.create(body)
    for runtime, service in pairs:
        _compare(part, api, runtime, service)
    for pair in pairs:
        for body in reversed(pair):
            api.delete(body)


def _pair(rng: random.Random, index: int) -> tuple[Body, Body]:
    name = f"pair-{index}"
    own = rng.random() < 1 / 2
    engine = {"name": _ENGINE, "image": "example.com/vllm:v1", **_container(rng)}
    others = [{"name": "proxy", "image": "example.com/proxy:v1"}] if rng.random() < 1 / 3 else []
    spec: Body = {
        "supportedModelFormats": [{"name": "vLLM", "version": "1", "autoSelect": False}],
        "containers": rng.sample([engine, *others], 1 + len(others)),
    }
    if "volumeMounts" in engine:
        spec["volumes"] = [_VOLUME]
    kind = "ServingRuntime" if own else "ClusterServingRuntime"
    space = {"namespace": _SPACE} if own else {}
    runtime = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": kind,
               "metadata": {"name": name, **space}, "spec": spec}  # fmt: skip
    model = {"modelFormat": {"name": "vLLM"}, "runtime": name, **_container(rng)}
    model.pop("volumeMounts", None)
    if rng.random() < 1 / 4:
        model["image"] = "example.com/vllm:v2"
    metadata = {"name": f"merged-{index}", "namespace": _SPACE,
                "annotations": {"serving.kserve.io/autoscalerClass": "none"}}  # fmt: skip
    service = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
               "metadata": metadata, "spec": {"predictor": {"model": model}}}  # fmt: skip
    return runtime, service


def _container(rng: random.Random) -> Body:
    """Draw some fields of a container."""
    gpus = str(rng.choice((1, 2, 8)))
    fields: Body = {
        "command": ["python3", "-m", rng.choice(("vllm.entrypoints.openai.api_server", "other"))],
        "args": rng.sample(_FLAGS, rng.randint(1, 3)),
        "env": [{"name": name, "value": gpus} for name in rng.sample("ABC", rng.randint(1, 2))],
        "resources": {"limits": {_GPU: gpus}, "requests": {_GPU: gpus}},
        "volumeMounts": [_MOUNT],
    }
    return {key: copy.deepcopy(item) for key, item in fields.items() if rng.random() < 2 / 3}


def _compare(part: Part, api: Cluster, runtime: Body, service: Body) -> None:
    metadata = {"name": f"{service['metadata']['name']}-predictor", "namespace": _SPACE}
    about = json.dumps([runtime["spec"], service["spec"]])
    made = wait(lambda: _made(api, metadata["name"]), _PATIENCE)
    part.check("a pair has a Deployment", holds=made, seen=about)
    planned = merge(runtime["spec"], service["spec"]["predictor"])
    if not made or planned is None:
        part.check("a pair is merged", holds=planned is not None, seen=about)
        return
    spec = _made(api, metadata["name"])["spec"]["template"]["spec"]
    (ours,) = (each for each in planned.spec["containers"] if each["name"] == _ENGINE)
    (theirs,) = (each for each in spec["containers"] if each["name"] == _ENGINE)
    for field in ("image", "command", "args"):
        wanted, seen = ours.get(field) or None, theirs.get(field)
        part.check(f"merged: {field}", holds=wanted == seen, seen=f"{seen}, not {wanted}: {about}")
    for kind in ("limits", "requests"):
        wanted, seen = (amounts(each, kind).get(_GPU) for each in (ours, theirs))
        part.check(f"merged: {kind}", holds=wanted == seen, seen=f"{seen}, not {wanted}: {about}")
    values = {each["name"]: each.get("value") for each in sequence(theirs.get("env"))}
    for each in sequence(ours.get("env")):
        seen = values.get(each["name"])
        part.check("merged: a variable", holds=seen == each["value"], seen=f"{seen}: {about}")
    mounts = [each["mountPath"] for each in sequence(theirs.get("volumeMounts"))]
    missing = [e for e in sequence(ours.get("volumeMounts")) if e["mountPath"] not in mounts]
    part.check("merged: mounts", holds=not missing, seen=about)
    volumes = {each["name"] for each in sequence(spec.get("volumes"))}
    lost = {each["name"] for each in sequence(planned.spec["volumes"])} - volumes
    part.check("merged: volumes", holds=not lost, seen=about)
    names = {each["name"] for each in planned.spec["containers"]}
    there = {each["name"] for each in spec["containers"]}
    part.check("merged: containers", holds=names == there, seen=f"{there}: {about}")
    part.count("pairs of a runtime and a service merged")


def _made(api: Cluster, name: str) -> Body:
    found = (b for b in api.list("apps/v1", "Deployment", _SPACE) if b["metadata"]["name"] == name)
    return next(found, {})
