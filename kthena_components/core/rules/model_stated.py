"""The rule model-stated: each pod that starts an engine names the model."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines import SERVE
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_startup import ALWAYS, Start, starts

MODEL = "model-stated"
_NEWER_DEFAULT = (0, 10)
"""The first vLLM with the newer default model."""
_DEFAULTS = "facebook/opt-125m", "Qwen/Qwen3-0.6B"


def model_stated(facts: ServingFacts) -> Iterator[Finding]:
    """Each pod that starts an engine names the model.

    Without one, vLLM serves a small default model: facebook/opt-125m up to 0.9.2, and
    Qwen/Qwen3-0.6B since then. SGLang does not start. Other programs that start an engine, such as
    Dynamo, are not checked.

    Pass: vllm serve Qwen/Qwen3-32B.
    Fail: vllm serve -tp 8; python3 -m sglang.launch_server --tp 8.
    Level: advisory for vLLM, which starts; mandatory for SGLang.
    Source: vllm/config/model.py ModelConfig.model; sglang/srt/server_args.py model_path.
    """
    for start in starts(facts, "vllm", "sglang"):
        told: set[str] = set()
        for pod in filter(None, (start.engine.entry, start.engine.worker)):
            if pod.command_path not in told:
                told.add(pod.command_path)
                yield from _modelless(start, pod)


def _modelless(start: Start, pod: PodFacts) -> Iterator[Finding]:
    command = pod.command
    if command is None or command.release is None or command.model is not None:
        return
    if any(problem.flag == SERVE for problem in command.problems):
        return  # `vllm serve` of this release ends without one
    version = command.release.version
    if command.engine == "sglang":
        remedy, level = "add --model-path", ALWAYS
        seen = "names no model, and SGLang does not start without one"
    else:
        default = _DEFAULTS[version >= _NEWER_DEFAULT]
        remedy, level = "write the model after `vllm serve`, or --model", Level.ADVISORY
        seen = f"names no model, and {command.release.title} serves {default} then"
    here = replace(start, command=command)
    for finding in here.refused(seen, remedy, level):
        yield replace(finding, path=pod.command_path)
