"""What a component writes passes `check` in every environment, or the component says why not."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.levels import ENVIRONMENTS, Settings, environment_levels
from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.results import Result, Summary
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core.findings import Level, SpecError
from kthena_components.core.naming import LWS_ENV
from kthena_components.systems import EMITTERS
from tests.support.specs import REMOVED, changed, gpu_template, template
from tests.support.strategies import SCRIPT, law, watched_servings

_ENTRY, _WORKER = (f"{role}_template.spec.containers[0]" for role in ("entry", "worker"))
_TIER = {"highest_tier_allowed": 1}
_ENGINE = "overlay.spec.containers[0]"
ROLE_CHANGES: list[tuple[str, Any]] = [
    (f"{_ENTRY}.image", "nginx"),
    (f"{_ENTRY}.image", "nginx:latest"),
    (f"{_ENTRY}.resources", REMOVED),
    (f"{_WORKER}.resources", REMOVED),
    (f"{_ENTRY}.resources", {"limits": {"cpu": "1"}}),
    (f"{_ENTRY}.resources", {"requests": {"cpu": "0"}}),
    (f"{_WORKER}.resources", {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}),
    ("entry_template.spec.initContainers", [{"name": "fetch", "image": "busybox:1.37"}]),
    ("entry_template.metadata", {"labels": {"modelserving.volcano.sh/role": "other"}}),
    ("worker_template.metadata", {"annotations": {"scheduling.k8s.io/group-name": "other"}}),
    ("entry_template.spec.schedulerName", "default-scheduler"),
    ("engine.image", "vllm/vllm-openai"),
    ("engine.image", "vllm/vllm-openai:latest"),
    ("overlay.spec.schedulerName", "default-scheduler"),
    (_ENGINE, {"name": "engine", "resources": {"requests": {"cpu": "0", "memory": "0"}}}),
    (_ENGINE, {"name": "side", "image": "busybox:1.37"}),
    (_ENGINE, {"name": "side", "image": "busybox", "resources": {"limits": {"cpu": "1"}}}),
    ("overlay.metadata", {"labels": {"modelserving.volcano.sh/entry": "false"}}),
    (f"{_ENTRY}.readinessProbe", {"httpGet": {"path": "/health", "port": 9000}}),
    (_ENGINE, {"name": "engine", "livenessProbe": {"tcpSocket": {"port": 9000}}}),
    ("resources.gpus_per_pod", 0),
    ("replicas", 0),
    ("worker_replicas", 0),
]
"""Changes of a role that components and `check` may check differently."""
CHANGES: list[tuple[str, Any]] = [
    ("replicas", 0),
    ("replicas", 5),
    ("gang_policy", {"min_role_replicas": {"server": 0, "a": 0}}),
    ("network_topology", {"group_policy": _TIER}),
    ("network_topology", {"role_policy": {"mode": "hard", "highest_tier_name": "rack"}}),
    ("network_topology", {"group_policy": _TIER, "role_policy": {"mode": "soft"}}),
    ("network_topology", {"group_policy": {"mode": "hard"}}),
    ("scheduler_name", "default-scheduler"),
    ("expose", {}),
    ("expose", {"target_port": 9000}),
    ("backend_options", {"model_server": {"workload_port": {"port": 9000}}}),
    ("backend_options", {"startup_policy": "LeaderReady"}),
    ("pod_disruption_budget", True),
    ("queue", "research"),
    ("spread_over", "zone"),
]
"""The same, of a whole serving."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("emitted")


def unsaid(compiled: Compiled, folder: Any) -> Iterator[str]:
    """Check what was written as a file, in each environment, and give what nobody said before."""
    file = folder / "objects.json"
    items = [manifest.body for manifest in compiled.manifests]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    versions = {"kthena": str(compiled.plan.kthena_version)}
    for environment in ENVIRONMENTS:
        levels = environment_levels(environment)
        told = {(f.rule, f.level) for f in levels.apply(compiled.findings)}
        settings = Settings(levels=levels, versions=versions)
        for each in check([str(file)], CheckOptions(settings=settings), Summary()):
            assert isinstance(each, Result), each
            finding = each.finding
            if finding.level is Level.MANDATORY and (finding.rule, finding.level) not in told:
                yield f"{environment}: {each.subject}: {finding}"


def _has(role: Mapping[str, Any], path: str) -> bool:
    """Tell whether a role has its pods from where a path leads."""
    field = path.partition(".")[0]
    return field in {"replicas", "worker_replicas", *role} or (
        field == "overlay" and "engine" in role
    )


@st.composite
def _odd_servings(draw: st.DrawFn, backend: str) -> Mapping[str, Any]:
    """Draw a serving, and change what its backend, its controller or `check` may not expect."""
    args = draw(watched_servings(backend))
    for path, value in draw(st.lists(st.sampled_from(CHANGES), max_size=3)):
        args = changed(args, {path: value})
    for path, value in draw(st.lists(st.sampled_from(ROLE_CHANGES), max_size=4)):
        index = draw(st.integers(0, len(args["roles"]) - 1))
        if _has(args["roles"][index], path):
            with suppress(LookupError):
                args = changed(args, {f"roles[{index}].{path}": value})
    return args


@law
@pytest.mark.property
@pytest.mark.parametrize("backend", EMITTERS)
@given(st.data())
def test_check_refuses_nothing_that_the_component_wrote(
    backend: str, folder: Any, data: st.DataObject
) -> None:
    args = data.draw(_odd_servings(backend))
    try:
        compiled = compile_serving(args)
    except SpecError:
        return
    assert list(unsaid(compiled, folder)) == []


@pytest.mark.parametrize("backend", ["native", "kthena", "matrixinfer"])
@pytest.mark.parametrize("policy", ["group_policy", "role_policy"])
def test_pods_without_requests_are_refused_in_a_hard_topology(
    backend: str, policy: str, folder: Any
) -> None:
    if (backend, policy) == ("matrixinfer", "role_policy"):
        return  # a ModelInfer has no topology of roles: the backend rejects each
    role = {"name": "server", "entry_template": template()}
    topology = {policy: {"mode": "hard", "highest_tier_allowed": 1}}
    args = {"name": "chat", "backend": backend, "roles": [role], "network_topology": topology}
    with pytest.raises(SpecError) as refused:
        compile_serving(args)
    assert [(f.rule, f.path) for f in refused.value.findings] == [
        ("gang-requests", "roles[0].entry_template.spec.containers")
    ]
    compiled = compile_serving(changed(args, {f"network_topology.{policy}.mode": "soft"}))
    assert list(unsaid(_hardened(compiled), folder)) != []
    for way in (
        {f"network_topology.{policy}": {"mode": "soft"}},
        {"roles[0].entry_template.spec.containers[0].resources": {"requests": {"cpu": "1"}}},
        {"roles[0].replicas": 0},
    ):
        assert compile_serving(changed(args, way)).findings == ()


def _hardened(compiled: Compiled) -> Compiled:
    """Write what the component refuses: the same objects with hard topologies."""
    written = json.dumps([manifest.body for manifest in compiled.manifests])
    bodies = json.loads(written.replace('"mode": "soft"', '"mode": "hard"'))
    pairs = zip(compiled.manifests, bodies, strict=True)
    return replace(compiled, manifests=tuple(replace(one, body=body) for one, body in pairs))


def test_a_gang_of_no_pods_has_no_pod_group() -> None:
    role = {"name": "server", "replicas": 0, "entry_template": template()}
    assert compile_serving({"name": "chat", "roles": [role]}).manifests == ()


def test_a_gang_in_which_nothing_starts_together_is_told() -> None:
    role = {"name": "server", "replicas": 2, "entry_template": template()}
    args = {"name": "chat", "roles": [role], "gang_policy": {"min_role_replicas": {"server": 0}}}
    assert [f.rule for f in compile_serving(args).findings] == ["gang-minimum-stated"]


_MP = "vllm serve m --pipeline-parallel-size 2 --nnodes 2 --node-rank $(LWS_WORKER_INDEX)"
_DP = "vllm serve m --data-parallel-size 2 --data-parallel-size-local 1"
_AT = "--data-parallel-address $(LWS_LEADER_ADDRESS)"
_SGLANG = (
    "python3 -m sglang.launch_server --model-path m --pp-size 2 --nnodes 2"
    " --node-rank $(LWS_WORKER_INDEX) --dist-init-addr $(LWS_LEADER_ADDRESS):5000"
)
_LED = [
    (
        f"{SCRIPT} leader --ray_cluster_size=2; vllm serve m --pipeline-parallel-size 2",
        f"{SCRIPT} worker --ray_address=$(LWS_LEADER_ADDRESS)",
    ),
    (
        "ray start --head --port=6379; vllm serve m --pipeline-parallel-size 2",
        "ray start --address=$(LWS_LEADER_ADDRESS):6379 --block",
    ),
    (_MP, f"{_MP} --headless --master-addr $(LWS_LEADER_ADDRESS)"),
    (_DP, f"{_DP} --headless --data-parallel-start-rank 1 {_AT}"),
    (_SGLANG, _SGLANG),
]
"""Command lines of the first pod and of the other one, which state the address of the first."""


@pytest.mark.parametrize(("entry", "worker"), _LED)
@pytest.mark.parametrize("names", [{}, LWS_ENV])
def test_each_instance_of_a_role_has_its_own_first_pod(
    entry: str, worker: str, names: Mapping[str, str], folder: Any
) -> None:
    for name, same in names.items():
        entry, worker = entry.replace(name, same), worker.replace(name, same)
    pods = {"entry_template": gpu_template(entry, 1), "worker_template": gpu_template(worker, 1)}
    role = {"name": "server", "replicas": 2, "worker_replicas": 1, **pods}
    args = {"name": "chat", "backend": "native", "roles": [role]}
    assert list(unsaid(compile_serving(args), folder)) == []


def test_the_gang_covers_a_role_whose_instances_differ(folder: Any) -> None:
    pods = {"entry_template": gpu_template(_SGLANG, 1), "worker_template": gpu_template(_SGLANG, 1)}
    role = {"name": "server", "replicas": 2, "worker_replicas": 1, **pods}
    compiled = compile_serving({"name": "chat", "backend": "native", "roles": [role]})
    sets = [m for m in compiled.manifests if m.body["kind"] == "StatefulSet"]
    image = "spec.template.spec.containers[0].image"
    edited = replace(sets[0], body=changed(sets[0].body, {image: "lmsysorg/sglang:v0.5.8"}))
    others = tuple(m for m in compiled.manifests if m is not sets[0])
    told = [*unsaid(replace(compiled, manifests=(*others, edited)), folder)]
    assert not [line for line in told if "gang-covers-engine" in line]


_TOLD = {
    "native": ("ENTRY_ADDRESS", "LWS_LEADER_ADDRESS"),
    "kthena": ("ENTRY_ADDRESS",),
    "matrixinfer": ("ENTRY_ADDRESS",),
    "lws": ("ENTRY_ADDRESS", "LWS_LEADER_ADDRESS"),
}
"""The variables with the address of an engine's first pod, by backend."""


@pytest.mark.parametrize(("backend", "name"), [(b, n) for b, each in _TOLD.items() for n in each])
@pytest.mark.parametrize("pods", _LED)
@pytest.mark.parametrize("wrong", ["MASTER", "RBG_LWP_LEADER_ADDRESS"])
def test_the_component_refuses_a_variable_that_check_refuses(
    backend: str, name: str, pods: tuple[str, str], wrong: str, folder: Any
) -> None:
    own = "WORKER_INDEX" if name == "ENTRY_ADDRESS" else "LWS_WORKER_INDEX"
    entry, worker = (
        each.replace("LWS_LEADER_ADDRESS", name).replace("LWS_WORKER_INDEX", own) for each in pods
    )
    compiled = compile_serving(_led(backend, entry, worker))
    assert list(unsaid(compiled, folder)) == []
    if backend != "native":  # its objects are joined by labels, and told nothing as one engine
        said = [*unsaid(_renamed(compiled, name, wrong), folder)]
        assert any(each.endswith("[leader-address]") for each in said)
    with pytest.raises(SpecError) as refused:
        compile_serving(_led(backend, *(each.replace(name, wrong) for each in (entry, worker))))
    assert "leader-address" in {finding.rule for finding in refused.value.findings}


def _led(backend: str, entry: str, worker: str) -> Mapping[str, Any]:
    pods = {"entry_template": gpu_template(entry, 1), "worker_template": gpu_template(worker, 1)}
    role = {"name": "server", "worker_replicas": 1, **pods}
    return {"name": "chat", "backend": backend, "roles": [role]}


def _renamed(compiled: Compiled, name: str, wrong: str) -> Compiled:
    """Write what the component refuses: the same objects with another variable."""
    written = json.dumps([manifest.body for manifest in compiled.manifests])
    bodies = json.loads(written.replace(f"$({name})", f"$({wrong})"))
    pairs = zip(compiled.manifests, bodies, strict=True)
    return replace(compiled, manifests=tuple(replace(one, body=body) for one, body in pairs))
