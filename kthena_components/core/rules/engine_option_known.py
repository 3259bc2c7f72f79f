"""Checks that the engine's release accepts the options of the command line."""

from collections.abc import Iterator

from kthena_components.core.engines import Problem
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.messages import title

OPTIONS = "engine-option-known"


def engine_option_known(facts: ServingFacts) -> Iterator[Finding]:
    """The engine's release has every option of the command line, and accepts its values.

    The options are those of each release's parser, for vLLM since 0.6, SGLang since 0.4.6 and
    TensorRT-LLM since 0.18.2: docs/engines.md. The tag of the project's own image states the
    release. For another image, or a tag without a release, the newest release is assumed, or the
    one in the tag if the image has the engine's name (vllm-cpu:v0.11.0-x), and findings that
    depend on the release are advisory. The rule reports unknown options, ambiguous
    abbreviations, words that belong to no option, values for switches, missing values, and values
    of the wrong type or not among the choices. It reads config files as the release does: what is
    not a map in YAML, a second --config, and a line of vLLM with --config that does not begin with
    the model, end the start. For programs with further options of their own,
    unknown options are not reported. Since vLLM 0.17.0 a line with --served-model-name that names
    the model as a bare word begins with it.

    No release reads an option with dashes instead of hyphens, in another case, in quotes, or behind
    `--`, and no container starts a command whose words are in one item of the list. `$NAME` and
    `${NAME}` stay as they are where no shell runs: Kubernetes expands $(NAME) only. These are
    mandatory whatever the image; a NAME that nothing in the pod sets is advisory, because a tool
    may fill it in before.

    Pass: --nnodes 2 with vllm/vllm-openai:v0.11.1.
    Fail: --nnodes 2 with vllm/vllm-openai:v0.11.0; --swap-space 4 with v0.18.0; --max-model-length;
        command ["vllm serve M -tp 8"]; an option that starts with an en dash; vllm serve -tp 8 M
        --served-model-name m.
    Level: mandatory; advisory if the release is uncertain or the engine starts anyway.
    Source: vllm/engine/arg_utils.py, vllm/utils/argparse_utils.py and sglang/srt/server_args.py of
        the releases, run as they are published; CPython's Lib/argparse.py.
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
        path=pod.flags_path or pod.command_path,
        seen=f"{title(engine)}: {problem.text}",
        remedy=problem.remedy or f"correct {problem.flag}",
        level=Level.MANDATORY if problem.hard else Level.ADVISORY,
    )
