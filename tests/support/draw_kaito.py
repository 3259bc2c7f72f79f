"""Servings that the kaito backend takes, drawn at random, and its examples."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from kthena_components.core.plan.build import build_plan
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.systems import find_emitter
from kthena_components.systems.kaito.options import KaitoOptions
from tests.support.specs import IMAGE_OF_KAITO, Args

_TWO_A100, _EIGHT_H100 = "Standard_NC48ads_A100_v4", "Standard_ND96isr_H100_v5"
_A100, _H100 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"
_TRANSFER = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'


class Split(NamedTuple):
    """A preset, its nodes, and what KAITO 0.11 makes of them."""

    preset: str
    model: str
    nodes: str
    product: str
    gpus: int
    pods: int
    sizes: dict[str, int]


SPLITS: Final = (
    Split(
        "llama-3.3-70b-instruct",
        "meta-llama/Llama-3.3-70B-Instruct",
        _TWO_A100, _A100, 2, 2, {"tensor": 2, "pipeline": 2},
    ),
    Split(
        "meta-llama/Llama-3.3-70B-Instruct",
        "meta-llama/Llama-3.3-70B-Instruct",
        "Standard_NC24ads_A100_v4", _A100, 1, 3, {"pipeline": 3},
    ),
    Split(
        "deepseek-r1-0528",
        "deepseek-ai/DeepSeek-R1-0528",
        _EIGHT_H100, _H100, 8, 2, {"tensor": 8, "pipeline": 2},
    ),
    Split("Qwen/Qwen3-32B", "Qwen/Qwen3-32B", _EIGHT_H100, _H100, 8, 1, {"tensor": 8}),
    Split("phi-4", "microsoft/phi-4", "p4de.24xlarge", _A100, 8, 1, {"data": 8}),
)  # fmt: skip
"""The second, third and last were seen on KAITO 0.11.0 with a real cluster."""


@st.composite
def kaito_servings(
    draw: st.DrawFn, names: Sequence[str], roles: Callable[[str], st.SearchStrategy[Args]]
) -> Args:
    """Draw a serving: any number of engines of one role."""
    name = draw(st.sampled_from(names))
    made = _presets(name) if draw(st.booleans()) else _templates(roles(name))
    args: Args = {"name": "chat", "backend": "kaito", **draw(made)}
    optional = {
        "namespace": st.sampled_from(["serving", "team-9"]),
        "expose": st.fixed_dictionaries(
            {"port": st.sampled_from([80, 8000])}, optional={"role": st.just(name)}
        ),
        "ready_timeout_seconds": st.integers(1, 60),
    }
    args |= draw(st.fixed_dictionaries({"replicas": st.integers(0, 3)}, optional=optional))
    if draw(st.booleans()):
        args["backend_options"] = {**args["backend_options"], "inference_set": True}
    if draw(st.booleans()):
        args["name"] = _longest_name(args)
    return args


@st.composite
def _presets(draw: st.DrawFn, name: str) -> Args:
    split = draw(st.sampled_from(SPLITS))
    nodes: Args = {"instance_type": split.nodes}
    if draw(st.booleans()):
        nodes = {"label_selector": {"nvidia.com/gpu.product": split.product, "team": "chat"}}
    optional: dict[str, st.SearchStrategy[Any]] = {
        "benchmark": st.booleans(),
        "adapters": st.just(
            {"a": {"image": "org/a:1"}, "b": {"image": "b", "pull_secrets": ["s"]}}
        ),
    }
    if split.pods == 1 and "data" not in split.sizes:
        optional["kv_cache_cpu_memory_utilization"] = st.sampled_from([0, 0.25, 1])
    role = preset_role(name, split)
    role["replicas"] = draw(st.integers(0, 3))
    role["engine"]["extra_args"] = draw(_flags())
    if draw(st.booleans()):
        role["hugging_face_token"] = {"name": "hf-token"}
    options = draw(st.fixed_dictionaries({}, optional=optional))
    return {
        "roles": [role],
        "scheduler_name": "default-scheduler",
        "backend_options": {"preset": split.preset, **nodes, **options},
    }


def preset_role(name: str, split: Split) -> Args:
    """Give a role that KAITO splits like this."""
    engine = {
        "kind": "vllm",
        "image": IMAGE_OF_KAITO,
        "model": split.model,
        "port": 5000,
        "parallelism": split.sizes,
    }
    sizes = {"worker_replicas": split.pods - 1, "resources": {"gpus_per_pod": split.gpus}}
    return {"name": name, "engine": engine, **sizes}


def _flags() -> st.SearchStrategy[list[str]]:
    each = [
        ["--max-model-len", "4096"],
        ["--max_model_len=1024"],
        ["--gpu-memory-utilization=0.9"],
        ["--kv-transfer-config", _TRANSFER],
        ["--served-model-name", "yes"],
    ]
    chosen = st.lists(st.sampled_from(each), max_size=3, unique_by=lambda words: words[0][:5])
    return chosen.map(lambda found: [word for words in found for word in words])


@st.composite
def _templates(draw: st.DrawFn, roles: st.SearchStrategy[Args]) -> Args:
    role = draw(roles.filter(lambda drawn: drawn["worker_replicas"] == 0))
    labels = {"label_selector": {"team": "chat"}}
    nodes = st.sampled_from([{"instance_type": "p5.48xlarge"}, labels])
    args: Args = {"roles": [role], "backend_options": draw(nodes)}
    scheduler = draw(st.sampled_from(["volcano", "default-scheduler"]))
    queue = {"queue": "research"} if scheduler == "volcano" and draw(st.booleans()) else {}
    return {**args, "scheduler_name": scheduler, **queue}


def _longest_name(args: Args) -> str:
    """Give the longest serving name that every generated name has room for."""
    emitter = find_emitter("kaito")
    assert emitter is not None
    options = parse_spec(KaitoOptions, args["backend_options"])
    plan = replace(build_plan(parse_spec(ModelServingSpec, args, "")), options=options)
    made = emitter.names(plan)
    return "c" * min(name.limit - len(name.name) + len(args["name"]) for name in made)
