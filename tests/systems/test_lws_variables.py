"""LeaderWorkerSet's variables in pod templates: each backend sets them, or refuses them by name.

The judge is what the kubelet would see: the env of the container that mentions the variable.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.for_each import for_each
from tests.support.specs import KSERVE_ENGINE, Args, changed, gpu_template

SAME = {
    "LWS_GROUP_SIZE": "GROUP_SIZE",
    "LWS_LEADER_ADDRESS": "ENTRY_ADDRESS",
    "LWS_WORKER_INDEX": "WORKER_INDEX",
}
SERVE = "vllm serve meta-llama/Llama-3.1-405B-Instruct --tensor-parallel-size 8"
SH = ("sh", "-c")
INIT = {"name": "wait", "image": "busybox:1.37"}
MAIN = "spec.containers[0]"
PLACES: Mapping[str, tuple[str, Any]] = {
    "command": (f"{MAIN}.command", ["run", "$(NAME)"]),
    "args": (f"{MAIN}.args", ["--at=$(NAME)"]),
    "env": (f"{MAIN}.env", [{"name": "AT", "value": "$(NAME)"}]),
    "script": (f"{MAIN}.command", [*SH, f"export AT=$NAME; {SERVE}"]),
    "braces": (f"{MAIN}.command", [*SH, f"export AT=${{NAME}}; {SERVE}"]),
    "default": (f"{MAIN}.command", [*SH, f"export AT=${{NAME:-1}}; {SERVE}"]),
    "arithmetic": (f"{MAIN}.command", [*SH, f"export AT=$((NAME - 1)); {SERVE}"]),
    "printenv": (f"{MAIN}.command", [*SH, f"export AT=$(printenv NAME); {SERVE}"]),
    "python": (f"{MAIN}.command", ["python3", "-c", "import os; print(os.environ['NAME'])"]),
    "startup-probe": (f"{MAIN}.startupProbe", {"exec": {"command": [*SH, "nc -z $NAME 1"]}}),
    "liveness-probe": (f"{MAIN}.livenessProbe", {"exec": {"command": [*SH, "nc -z $NAME 1"]}}),
    "hook": (f"{MAIN}.lifecycle", {"preStop": {"exec": {"command": [*SH, "leave ${NAME}"]}}}),
    "init": ("spec.initContainers", [{**INIT, "args": ["wait", "$(NAME)"]}]),
    "init-script": ("spec.initContainers", [{**INIT, "command": [*SH, "nslookup $NAME"]}]),
    "init-env": ("spec.initContainers", [{**INIT, "env": [{"name": "AT", "value": "$(NAME)"}]}]),
    "sidecar": ("spec.containers[1]", {**INIT, "command": [*SH, "nslookup ${NAME}"]}),
}
BACKENDS: Mapping[str, Args] = {
    "native": {},
    "kthena": {},
    "matrixinfer": {},
    "lws": {},
    "kaito": {
        "worker_replicas": 0,
        "backend_options": {"instance_type": "Standard_ND96isr_H100_v5"},
    },
    "kserve": {"backend_options": KSERVE_ENGINE},
    "kserve-llm": {
        "backend_options": {"kind": "LLMInferenceService", "storage_uri": "pvc://llama/hf"}
    },
}
CONTROLLER_SETS = {"lws", "kserve-llm"}
"""The pods are LeaderWorkerSet's: its webhook puts the variables in front of every env."""
REFUSING = {"kthena", "matrixinfer"}
"""Their controllers append variables, and a template cannot refer to what comes after it."""


def serving(backend: str, place: str, name: str) -> Args:
    """Give a serving of two pods, or of one for KAITO, that uses a variable in one place."""
    path, value = PLACES[place]
    more = dict(BACKENDS[backend])
    workers = more.pop("worker_replicas", 1)
    serve = f"{SERVE} --pipeline-parallel-size {workers + 1}"
    if workers:
        serve = f"ray start --address=head:6379; {serve} --distributed-executor-backend ray"
    written = json.loads(json.dumps(value).replace("NAME", name).replace(SERVE, serve))
    probe = {"httpGet": {"path": "/health", "port": 8000}}
    plain = gpu_template(serve, ports=[{"containerPort": 8000}], readinessProbe=probe)
    role = {
        "name": "serve",
        "worker_replicas": workers,
        "entry_template": changed(plain, {path: written}),
        "worker_template": changed(plain, {path: written}),
    }
    if not workers:
        del role["worker_template"]
    elif (backend, place) == ("kserve", "sidecar"):  # its workers have one container
        role["worker_template"] = plain
    return {"name": "llama", "backend": backend.partition("-")[0], "roles": [role], **more}


def is_refused(backend: str, place: str, name: str) -> bool:
    """Tell whether nothing can set the variable there."""
    in_init = backend == "kserve" and place.startswith("init") and name == "LWS_LEADER_ADDRESS"
    return backend in REFUSING or in_init


def containers(value: Any) -> Iterator[Mapping[str, Any]]:
    """Give every container of an object."""
    if isinstance(value, Mapping):
        if "image" in value and "name" in value:
            yield value
        for item in value.values():
            yield from containers(item)
    elif isinstance(value, list):
        for item in value:
            yield from containers(item)


@for_each("name", SAME)
@for_each("place", PLACES)
@for_each("backend", BACKENDS)
def test_a_variable_is_set_where_it_is_used_or_refused(backend: str, place: str, name: str) -> None:
    args = serving(backend, place, name)
    if is_refused(backend, place, name):
        with pytest.raises(SpecError) as refused:
            compile_serving(args)
        said = [str(finding) for finding in refused.value.findings]
        at = PLACES[place][0].removeprefix("spec.")
        assert all(name in one and at in one for one in said), said
        if backend in REFUSING:
            assert all(f"{name}, which only LeaderWorkerSet sets" in one for one in said)
            assert all(SAME[name] in one.replace(name, "") for one in said), said
        return
    bodies = [manifest.body for manifest in compile_serving(args).manifests]
    using = [one for body in bodies for one in containers(body) if name in json.dumps(one)]
    assert using
    if backend in CONTROLLER_SETS:
        kinds = {body["kind"] for body in bodies}
        assert kinds & {"LeaderWorkerSet", "LLMInferenceService"}
        return
    for container in using:
        names = [entry["name"] for entry in container.get("env", [])]
        assert name in names, container
        assert "AT" not in names or names.index(name) < names.index("AT")
