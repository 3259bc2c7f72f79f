"""Writes a worker's config: Kthena makes vLLM's command line of it.

Source: Kthena v1.0.0 pkg/model-booster-controller/utils/template.go ConvertVLLMArgsFromJson and
convert/model_serving.go buildCommands.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines import write_commands
from kthena_components.core.engines.flags import by_flag
from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.model import RolePlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.launch import launch_of
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import is_unresolved

MODEL_NAME = "served-model-name"
_SERVE = 3
"""Words of `vllm serve MODEL`."""
_EXECUTOR = "--distributed-executor-backend"
_BARE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
"""Words that bash takes as they are."""


def config_of(role: RolePlan) -> dict[str, str]:
    """Return vLLM's options without dashes, each with its value; a switch has an empty one.

    All values are texts: Kthena writes numbers from 1000000 on with an exponent. Engines answer to
    the model's name, as those of other backends do: without the option, to the path of its cache.
    """
    written = {flag.removeprefix("--"): " ".join(values) for flag, values in _flags(role)}
    stated = {} if role.engine is None else {MODEL_NAME: role.engine.model}
    return dict(sorted((stated | written).items()))


def _flags(role: RolePlan) -> list[tuple[str, list[str]]]:
    """Return the options of the engine. Over several pods, Kthena writes those of Ray."""
    launch = launch_of(role.stated)
    words = write_commands(replace(launch, pods=1)).entry[_SERVE:]
    several = launch.pods > 1
    return [each for each in by_flag(words) if not (several and each[0] == _EXECUTOR)]


def refuse_config(role: RolePlan) -> Iterator[Finding]:
    """Report options that no config can state."""
    at, seen_before = join_path(role.path, "engine.extra_args"), set[str]()
    for flag, values in _flags(role):
        for seen in _wrong(flag, values, twice=flag in seen_before):
            yield Finding(
                path=at,
                seen=f"has {display(flag)} {seen}",
                remedy=elsewhere(remove()),
                rule="backend-loss",
            )
        seen_before.add(flag)
    for word in _split_by_bash(role):
        yield Finding(
            path=join_path(role.path, "engine"),
            seen=f"has the word {display(word)}, but over several pods Kthena joins the words of a "
            "ModelBooster with blanks, without quotes, in a line for bash",
            remedy=elsewhere("write it without characters that bash reads"),
            rule="backend-loss",
        )


def _wrong(flag: str, values: list[str], *, twice: bool) -> Iterator[str]:
    known = not is_unresolved(flag)
    if not known or not re.fullmatch(r"--[A-Za-z][\w.-]*", flag):
        yield "which is no option of the form --name, and a config has only these"
    elif "_" in flag.partition(".")[2]:
        yield "but Kthena writes every _ of an option as -, which is another field here"
    elif twice:
        yield "twice, but a config has each option once"
    elif len(values) > 1:
        yield f"with {len(values)} values, but an option of a config is followed by one word"
    elif values == [""]:
        yield "with an empty value, which a config states as a switch"


def _split_by_bash(role: RolePlan) -> Iterator[str]:
    if role.worker_replicas:
        yield from (
            value
            for value in config_of(role).values()
            if value and not is_unresolved(value) and not _BARE.fullmatch(value)
        )
