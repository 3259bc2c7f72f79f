"""Whether the release of an engine that runs takes the options of the command line."""

from collections.abc import Iterator

from kthena_components.core.engines import Problem
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.wording import title

OPTIONS = "engine-option-known"


def engine_option_known(facts: ServingFacts) -> Iterator[Finding]:
    """The engine's release has every option of the command line, and takes its values.

    The options are those that the parser of each release of vLLM (since 0.6) and SGLang (since
    0.4.6) lists: docs/engines.md. The tag of the project's own image says which release runs. With
    another image, or a tag without a release, the newest one is taken, and what depends on the
    release is advice. Refused are unknown options, abbreviations that fit several options, words
    that belong to no option, values of switches, values that are missing, of another type or not
    among the choices. Programs that have options of their own beside the engine's are not judged
    for the options that they have.

    Pass: --nnodes 2 with vllm/vllm-openai:v0.11.1.
    Fail: --nnodes 2 with vllm/vllm-openai:v0.11.0; --swap-space 4 with v0.18.0; --max-model-length.
    Level: mandatory; advisory where the release is not sure or the engine starts all the same.
    Source: vllm/engine/arg_utils.py, vllm/utils/argparse_utils.py and sglang/srt/server_args.py of
        the releases, run as they are published.
    """
    for engine in facts.engines:
        told: set[Problem] = set()
        for pod in filter(None, (engine.entry, engine.worker)):
            for problem in pod.command.problems if pod.command else ():
                if problem.option and problem not in told:
                    told.add(problem)
                    yield _finding(engine, pod, problem)


def _finding(engine: EngineFacts, pod: PodFacts, problem: Problem) -> Finding:
    return Finding(
        path=pod.command_path,
        seen=f"{title(engine)}: {problem.text}",
        remedy=problem.remedy or f"correct {problem.flag}",
        rule=OPTIONS,
        level=Level.MANDATORY if problem.hard else Level.ADVISORY,
    )
