"""Servings that are right, drawn at random: small numbers, so that a failure stays readable."""

import copy
import json
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from kthena_components.core.naming import LWS_ENV, STATEFUL_SET_NAME
from kthena_components.core.values.unknown import BLANK_WORD, OUTPUT_CLOSE, OUTPUT_OPEN, Blank
from tests.support.draw_booster import booster
from tests.support.draw_kaito import kaito_servings
from tests.support.draw_kserve import kserve_servings
from tests.support.draw_kthena import kthena_options
from tests.support.draw_lws import leader_worker_sets, longest_generated_name
from tests.support.draw_matrixinfer import model_infers
from tests.support.specs import Args, gpu_template, template

law = settings(max_examples=15, deadline=None)
"""How often a law is tried: often enough in all, since each run draws anew."""
SCRIPT = "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh"
NAMES = ("a", "server", "prefill", "decode", "llama-405b", "a-b", "x9")
"""Role names that every backend takes."""
_GPUS = {"name": "gpus", "device_class": "gpu.nvidia.com"}
CLAIMS = (
    [_GPUS],
    [{**_GPUS, "selectors": ["device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H200'"]}],
    [{"name": "nics", "device_class": "nics.example.com", "gpus": False, "count": 2}],
    [_GPUS, {"name": "channel", "template": "chat-channel", "gpus": False}],
)
"""Claims of a role: its GPUs, other devices, or both."""
VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")


@st.composite
def servings(draw: st.DrawFn, backend: str, *, claims: bool = False) -> Args:
    """Draw the arguments of a ModelServing that this backend takes.

    Args:
        draw: Draws a value.
        backend: The backend.
        claims: Whether roles may claim devices, in templates beside the serving.
    """
    return answering(draw(_of_backend(backend, claims=claims)))


def answering(args: Args) -> Args:
    """Let the front Service target the port on which a template of one's own listens."""
    for role in args["roles"] if "expose" in args else ():
        named = args["expose"].get("role") in {None, role["name"]}
        if named and "vllm serve" in json.dumps(role.get("entry_template")):
            args["expose"] = {**args["expose"], "target_port": 8000}
    return args


@st.composite
def _of_backend(draw: st.DrawFn, backend: str, *, claims: bool) -> Args:
    roles_of, renamed = partial(_roles, claims=claims), partial(_with_kthenas_names, claims=claims)
    if backend == "booster":
        return booster(draw(st.randoms(use_true_random=False)))
    if backend == "lws":
        return draw(leader_worker_sets(NAMES, lambda name: roles_of(name, "1.0")))
    if backend == "matrixinfer":
        infers = _requesting(draw(model_infers(NAMES, renamed)))
        return infers | ({"name": longest_generated_name(infers)} if draw(st.booleans()) else {})
    if backend == "kaito":
        return draw(kaito_servings(NAMES, lambda name: _roles(name, "1.0")))
    if backend == "kserve":
        return draw(kserve_servings())
    version = draw(st.sampled_from(VERSIONS[::-1])) if backend == "kthena" else "1.0"
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    drawn = renamed if backend == "kthena" else roles_of
    roles = [draw(drawn(name, version)) for name in names]
    args: Args = {"name": "chat", "backend": backend, "roles": roles}
    if backend == "kthena":
        args["kthena_version"] = version
    args |= draw(
        st.fixed_dictionaries(
            {"replicas": st.integers(0, 3)},
            optional={
                "namespace": st.sampled_from(["serving", "team-9"]),
                "gang_policy": _gangs(roles),
                "expose": st.fixed_dictionaries({"role": st.sampled_from(names)}),
                "ready_timeout_seconds": st.integers(1, 60),
            },
        )
    )
    _add_topology(draw, args, version)
    _add_rollout(draw, args, backend, version)
    if version == "1.0" and draw(st.booleans()):
        args["queue"] = "research"
    if backend == "kthena" and draw(st.booleans()):
        args["backend_options"] = draw(kthena_options(args, version))
    if draw(st.booleans()):
        args["name"] = _longest_name(args)
    return args


@st.composite
def watched_servings(draw: st.DrawFn, backend: str, *, claims: bool = False) -> Args:
    """Draw the arguments of a ModelServing, with monitoring where its engines have metrics.

    The drawn templates that start an engine declare no port.
    """
    args = draw(servings(backend, claims=claims))
    bare = json.dumps([role.get("entry_template") for role in args["roles"]])
    kinds = {role["engine"]["kind"] for role in args["roles"] if "engine" in role}
    has_metrics = bool(kinds & {"vllm", "sglang"}) and "vllm" not in bare
    has_metrics = has_metrics and backend != "booster"
    return args | ({"monitoring": True} if has_metrics and draw(st.booleans()) else {})


@st.composite
def _roles(draw: st.DrawFn, name: str, version: str, *, claims: bool = False) -> Args:
    pods = draw(st.integers(1, 3))
    engines = [_vllm, _ray, _data_parallel, _sglang, _trtllm]
    pods_of = draw(st.sampled_from([_plain, _ray_script, *engines]))
    role = {
        "name": name,
        "replicas": draw(st.integers(0, 3)),
        "worker_replicas": pods - 1,
        **pods_of(draw, pods),
    }
    if "engine" in role and draw(st.booleans()):
        role["overlay"] = draw(_overlays(annotations=version in {"0.4", "1.0"}))
    if "engine" in role and claims and draw(st.booleans()):
        role["resources"]["claims"] = draw(st.sampled_from(CLAIMS))
    return role


def _with_kthenas_names(
    name: str, version: str, *, claims: bool = False
) -> st.SearchStrategy[Args]:
    """Draw a role without the variables that only LeaderWorkerSet sets."""
    return _roles(name, version, claims=claims).map(_in_kthenas_names)


def _in_kthenas_names(role: Args) -> Args:
    text = json.dumps(role)
    for name, same in LWS_ENV.items():
        text = text.replace(name, same)
    renamed: Args = json.loads(text)
    return renamed


def _plain(draw: st.DrawFn, pods: int) -> Args:
    env = [{"name": "GROUP_SIZE", "value": "9"}, {"name": "TZ", "value": "UTC"}]
    init = [{"name": "fetch", "image": "busybox:1.37"}]
    entry = template(env=draw(st.sampled_from([[], env])))
    if draw(st.booleans()):
        entry["spec"]["initContainers"] = init
    worker = {"worker_template": template("worker")} if pods > 1 or draw(st.booleans()) else {}
    return {"entry_template": entry, **worker}


def _ray_script(draw: st.DrawFn, pods: int) -> Args:
    gpus = draw(st.sampled_from([1, 2, 8]))
    words = draw(st.sampled_from(["GROUP_SIZE ENTRY_ADDRESS", "LWS_GROUP_SIZE LWS_LEADER_ADDRESS"]))
    size, address = words.split()
    size = draw(st.sampled_from([str(pods), f"$({size})"]))
    leader = (
        f"{SCRIPT} leader --ray_cluster_size={size}; vllm serve m "
        f"--tensor-parallel-size {gpus} --pipeline-parallel-size {pods}"
    )
    return {
        "entry_template": gpu_template(leader, gpus),
        "worker_template": gpu_template(f"{SCRIPT} worker --ray_address=$({address})", gpus),
    }


def _vllm(draw: st.DrawFn, pods: int) -> Args:
    gpus = draw(st.sampled_from([1, 2, 8]))
    sizes = {"tensor": gpus, "pipeline": pods}
    if draw(st.booleans()):
        sizes = {"tensor": gpus * pods, "expert": True}
    role = _engine("vllm", gpus, sizes)
    connector = draw(st.sampled_from([None, "nixl", "lmcache"]))
    if connector is not None:
        role["engine"]["kv_transfer"] = {"role": "both", "connector": connector}
    return role


def _ray(draw: st.DrawFn, pods: int) -> Args:
    role = _vllm(draw, pods)
    role["engine"]["launcher"] = "ray"
    role["hugging_face_token"] = {"name": "hf-token"}
    return role


def _data_parallel(draw: st.DrawFn, pods: int) -> Args:
    gpus, copies = draw(st.sampled_from([(1, 1), (2, 2), (8, 2), (8, 4)]))
    return _engine("vllm", gpus, {"tensor": gpus // copies, "data": copies * pods})


def _sglang(draw: st.DrawFn, pods: int) -> Args:
    gpus = draw(st.sampled_from([1, 2, 8]))
    return _engine("sglang", gpus, {"tensor": gpus * pods, "expert": draw(st.booleans())})


def _trtllm(draw: st.DrawFn, pods: int) -> Args:
    gpus = draw(st.sampled_from([1, 2, 8]))
    sizes = {"tensor": gpus, "pipeline": pods, "expert": draw(st.booleans())}
    return _engine("trtllm", gpus, sizes)


def _engine(kind: str, gpus: int, parallelism: Mapping[str, Any]) -> Args:
    engine = {"kind": kind, "image": f"{kind}:v1", "model": "org/m", "parallelism": parallelism}
    return {"engine": engine, "resources": {"gpus_per_pod": gpus, "memory": "8Gi"}}


def _overlays(*, annotations: bool) -> st.SearchStrategy[Args]:
    spec = {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "engine", "tty": True}]}
    metadata = {"labels": {"team": "chat"}, **({"annotations": {"a": "b"}} if annotations else {})}
    return st.sampled_from([{"spec": spec}, {"metadata": metadata}])


def _gangs(roles: list[Args]) -> st.SearchStrategy[Args]:
    """Draw minima for some of the roles."""
    minima = {role["name"]: st.integers(0, role["replicas"]) for role in roles}
    chosen = st.fixed_dictionaries({}, optional=minima)
    return st.fixed_dictionaries({"min_role_replicas": chosen})


def _policies() -> st.SearchStrategy[Args]:
    tier = st.fixed_dictionaries(
        {"highest_tier_allowed": st.integers(1, 3)}, optional={"mode": st.just("soft")}
    )
    name = st.just({"mode": "hard", "highest_tier_name": "rack"})
    return st.one_of(tier, name, st.just({"mode": "soft"}))


def _add_topology(draw: st.DrawFn, args: Args, version: str) -> None:
    if not draw(st.booleans()):
        return
    if version == "0.1":
        if "gang_policy" in args:
            args["network_topology"] = {"group_policy": {"highest_tier_allowed": 1}}
    else:
        policies = {"group_policy": _policies(), "role_policy": _policies()}
        args["network_topology"] = draw(st.fixed_dictionaries({}, optional=policies))
    _requesting(args)


def topology_modes(args: Mapping[str, Any]) -> set[str]:
    """List the modes of a serving's topologies."""
    policies = args.get("network_topology", {}).values()
    return {policy.get("mode", "hard") for policy in policies}


def _requesting(args: Args) -> Args:
    """Add requests to templates without any: a hard topology does not apply to such pods."""
    for role in args["roles"] if "hard" in topology_modes(args) else ():
        for field in {"entry_template", "worker_template"}.intersection(role):
            (container,) = role[field]["spec"]["containers"]
            container.setdefault("resources", {"requests": {"cpu": "1"}})
    return args


def _add_rollout(draw: st.DrawFn, args: Args, backend: str, version: str) -> None:
    groups = args["replicas"]
    if version in {"0.4", "1.0"} and draw(st.booleans()):
        args["rollout_strategy"] = {"type": "RoleRollingUpdate"}
        if backend == "kthena" and version == "1.0":
            for role in args["roles"]:
                if role["replicas"] and draw(st.booleans()):
                    role["max_unavailable"] = draw(st.integers(1, role["replicas"]))
        return
    if not draw(st.booleans()):
        return
    percent = version in {"0.4", "1.0"}
    percentages = ["0%", "50%", "100%"] if percent else []
    update: Args = {}
    if version != "0.1":
        update["max_unavailable"] = draw(st.sampled_from([1, 2, 3, *(["100%"] if groups else [])]))
    if percent or groups:
        last = groups if percent else groups - 1
        update["partition"] = draw(st.sampled_from([*range(last + 1), *percentages]))
    args["rollout_strategy"] = {"rolling_update_configuration": update}


def _longest_name(args: Args) -> str:
    """Give the longest serving name that fits: a worker StatefulSet's name is the tightest."""
    tails = [
        len(f"-{max(args['replicas'] - 1, 0)}-{role['name']}-{max(role['replicas'] - 1, 0)}-w")
        for role in args["roles"]
    ]
    return "c" * (STATEFUL_SET_NAME - max(tails))


@cache
def json_trees() -> st.SearchStrategy[Any]:
    """Draw anything that JSON or YAML can hold, late tokens and odd numbers included.

    Hypothesis checks each strategy that is made, which takes longer than to draw from it.
    """
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=8)
        | st.sampled_from(ODD_LEAVES)
    )
    return st.recursive(leaves, _branches, max_leaves=6)


def _branches(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(children, max_size=3) | st.dictionaries(
        st.text(max_size=4), children, max_size=3
    )


@st.composite
def damaged(draw: st.DrawFn, body: Mapping[str, Any]) -> Args:
    """Draw a copy of an object in which one or two places hold something else."""
    result = copy.deepcopy(dict(body))
    for _ in range(draw(st.integers(1, 2))):
        holder: Any = result
        key = draw(_keys_of(holder))
        while isinstance(holder[key], dict | list) and holder[key] and draw(st.booleans()):
            holder = holder[key]
            key = draw(_keys_of(holder))
        holder[key] = draw(_odd())
    return result


@cache
def _odd() -> st.SearchStrategy[Any]:
    return st.sampled_from(ODD_LEAVES) | json_trees()


def _keys_of(holder: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder)))


LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
"""What stands for a Pulumi Output while a plan is made."""
PREVIEW_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What the engine puts for a string that is not known during a preview."""
ODD_LEAVES = (
    LATE,
    Blank("${NAME}"),
    BLANK_WORD,
    PREVIEW_UNKNOWN,
    f"--tensor-parallel-size={LATE}",
    "$(GROUP_SIZE)",
    "vllm serve m --tensor-parallel-size 8",
    "1e999",
    "9" * 5000,
    10**40,
    -1,
    float("inf"),
    float("nan"),
    8.0,
    "8",
)
"""Values that are most likely to trip a reader."""
