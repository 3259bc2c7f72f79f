"""Servings for KServe, and the refusal of what is changed in them."""

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.specs import ALL, Args, changed, example_for, gpu_template

PORTS = [{"containerPort": 8000}]
SINGLE = example_for("kserve", "native-8b")
"""One group of one pod."""
ENGINE = example_for("kserve", "engine-native")
"""One engine of two pods, joined by vLLM itself."""
RAY = example_for("kserve", "engine-ray")
UPDATE = "rollout_strategy.rolling_update_configuration"
TEMPLATES = changed(
    ENGINE,
    {
        "roles[0]": {
            "name": "decode",
            "worker_replicas": 2,
            "entry_template": gpu_template("serve-it", ports=PORTS),
            "worker_template": gpu_template("join-it"),
        }
    },
)
HEAD, WORKER = "roles[0].entry_template", "roles[0].worker_template"
FIRST = "spec.containers[0]"


def said(args: Args, changes: Args) -> str:
    """Give the refusal, or an empty string."""
    try:
        compile_serving(changed(args, changes))
    except SpecError as refusal:
        return str(refusal)
    return ""


def _as_llm(example: str) -> Args:
    """Give an example as an LLMInferenceService, without the fields that KServe refuses."""
    args = changed(ALL[example], {"backend": "kserve", "backend_options": {"kind": _KIND}})
    return {key: value for key, value in args.items() if key not in _REFUSED}


_KIND = "LLMInferenceService"
_REFUSED = {"network_topology", "gang_policy"}
LLM = {key: value for key, value in _as_llm("engine-native").items() if key != "expose"}
"""Two groups of one engine of two pods."""
SPLIT = _as_llm("prefill-decode")
"""Two engines of four pods for prefill, and one of three for decode."""
