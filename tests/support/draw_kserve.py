"""Servings for KServe, drawn at random: one role, of single pods or of one engine."""

from typing import Any

from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_serving
from kthena_components.systems import find_emitter
from tests.support.specs import VLLM, Args, changed, gpu_template, template

_SCRIPT = "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh"
_NAMES = ("a", "server", "llama-405b", "a-b", "x9")
_UPDATE = "rollout_strategy.rolling_update_configuration"
_PORTS = [{"containerPort": 8000}]
_CLAIMS = st.sampled_from(["pvc://llama/hf", "oci://registry.example/llama:1"])


@st.composite
def kserve_servings(draw: st.DrawFn) -> Args:
    """Draw a serving that backend kserve takes."""
    args: Args = draw(st.one_of(_single(), _several(), _llm()))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "namespace": st.sampled_from(["serving", "team-9"]),
        "expose": st.just({"role": args["roles"][0]["name"]}),
        "ready_timeout_seconds": st.integers(1, 60),
        "scheduler_name": st.just("default-scheduler"),
    }
    if args.get("backend_options", {}).get("kind") is None:
        optional["recovery_policy"] = st.just("None")
    args |= draw(st.fixed_dictionaries({}, optional=optional))
    if draw(st.booleans()):
        args["name"] = _longest_name(args)
    return args


@st.composite
def _single(draw: st.DrawFn) -> Args:
    """Draw groups of single pods."""
    groups, replicas = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    pod = draw(st.sampled_from([_plain(), _engine(8, {"tensor": 8}), _engine(8, {"data": 8})]))
    role = {"name": draw(st.sampled_from(_NAMES)), "replicas": replicas, **pod}
    args: Args = {"name": "chat", "backend": "kserve", "replicas": groups, "roles": [role]}
    if draw(st.booleans()):
        args["backend_options"] = {"storage_uri": draw(_CLAIMS)}
    if draw(st.booleans()):
        budget = {"max_unavailable": draw(st.sampled_from([1, 2, *(["100%"] if groups else [])]))}
        surge = st.fixed_dictionaries({}, optional={"max_surge": st.sampled_from([0, 1, "50%"])})
        args = changed(args, {_UPDATE: {**budget, **draw(surge)}})
    return args


@st.composite
def _several(draw: st.DrawFn) -> Args:
    """Draw one engine of several pods."""
    pods, gpus = draw(st.integers(2, 4)), draw(st.sampled_from([1, 2, 8]))
    kinds = [_ray(pods, gpus), _script(pods, gpus), _unknown()]
    if pods == 2:
        kinds += [_engine(gpus, {"tensor": gpus, "pipeline": 2}), _sglang(gpus)]
    role = {
        "name": draw(st.sampled_from(_NAMES)),
        "worker_replicas": pods - 1,
        **draw(st.sampled_from(kinds)),
    }
    options = {"storage_uri": draw(_CLAIMS), "keeps_workers": True}
    args = {"name": "chat", "backend": "kserve", "backend_options": options, "roles": [role]}
    if draw(st.booleans()):
        budget = {"max_unavailable": draw(st.sampled_from([0, 1])), "max_surge": 1}
        args = changed(args, {_UPDATE: budget})
    return args


@st.composite
def _llm(draw: st.DrawFn) -> Args:
    """Draw engines of several pods, and perhaps others for prefill."""
    names = draw(st.sampled_from([["decode"], ["a"], ["prefill"], ["prefill", "decode"]]))
    roles = []
    for name in names:
        pods, gpus = draw(st.integers(2, 4)), draw(st.sampled_from([1, 2, 8]))
        mp = _engine(gpus, {"tensor": gpus, "pipeline": pods})
        copies = _engine(gpus, {"data": pods * gpus})
        pod = draw(st.sampled_from([mp, copies, _ray(pods, gpus), _script(pods, gpus), _unknown()]))
        sizes = {"replicas": draw(st.integers(0, 3)), "worker_replicas": pods - 1}
        roles.append({"name": name, **sizes, **pod})
    options: Args = {"kind": "LLMInferenceService", "storage_uri": draw(_CLAIMS)}
    options["replaces_presets"] = any("data" in _parallelism(role) for role in roles)
    if draw(st.booleans()):
        options["write_configs"] = False
    args: Args = {"name": "chat", "backend": "kserve", "backend_options": options, "roles": roles}
    if len(names) == 1:
        args["replicas"] = draw(st.integers(0, 3))
    return args


def _parallelism(role: Args) -> Args:
    found: Args = role.get("engine", {}).get("parallelism", {})
    return found


def _plain() -> Args:
    limits = {"cpu": "1", "memory": "1Gi"}
    env = [{"name": "GROUP_SIZE", "value": "9"}, {"name": "TZ", "value": "UTC"}]
    pod = template(env=env, resources={"limits": limits, "requests": limits}, ports=_PORTS)
    return {"entry_template": changed(pod, {"spec.containers[1]": {"name": "log", "image": "a:1"}})}


def _engine(gpus: int, parallelism: Args, kind: str = "vllm") -> Args:
    engine = {"kind": kind, "image": f"{kind}:v1", "model": "org/m", "parallelism": parallelism}
    resources = {"gpus_per_pod": gpus, "memory": "8Gi", "cpu": "4"}
    metadata = {"labels": {"team": "chat"}, "annotations": {"a": "b"}}
    return {"engine": engine, "resources": resources, "overlay": {"metadata": metadata}}


def _ray(pods: int, gpus: int) -> Args:
    role = _engine(gpus, {"tensor": gpus, "pipeline": pods})
    return changed(role, {"engine.launcher": "ray", "hugging_face_token": {"name": "hf-token"}})


def _sglang(gpus: int) -> Args:
    return _engine(gpus, {"tensor": 2 * gpus}, "sglang")


def _script(pods: int, gpus: int) -> Args:
    """Give templates in which the engine is not the first container of the head."""
    leader = (
        f"{_SCRIPT} leader --ray_cluster_size=$(GROUP_SIZE); vllm serve m "
        f"--tensor-parallel-size {gpus} --pipeline-parallel-size {pods}"
    )
    head = gpu_template(leader, gpus, ports=_PORTS)
    head["spec"]["containers"].insert(0, {"name": "log", "image": "a:1"})
    worker = gpu_template(f"{_SCRIPT} worker --ray_address=$(LWS_LEADER_ADDRESS)", gpus)
    return {"entry_template": head, "worker_template": worker}


def _unknown() -> Args:
    """Give templates without a known command, on GPUs of another vendor."""
    devices = {"limits": {"amd.com/gpu": "4"}, "requests": {"amd.com/gpu": "4"}}
    return {
        "entry_template": template(
            "serve", VLLM, command=["serve-it"], resources=devices, ports=_PORTS
        ),
        "worker_template": template("join", VLLM, command=["join-it"], resources=devices),
    }


def _longest_name(args: Args) -> str:
    """Give the longest serving name that every generated name has room for."""
    emitter = find_emitter("kserve")
    assert emitter is not None
    made = emitter.names(compile_serving(args).plan)
    return "c" * min(name.limit - len(name.name) + len(args["name"]) for name in made)
