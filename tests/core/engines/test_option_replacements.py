"""What is written in place of removed options: the release must have it."""

import re

import pytest

from kthena_components.core.engines import Problem, read_command
from kthena_components.core.engines.mistakes import EQUIVALENTS, SUCCESSORS
from kthena_components.core.engines.option_table import load
from kthena_components.core.engines.options import TITLES
from tests.support.for_each import for_each

IMAGES = {"vLLM": "vllm/vllm-openai:v", "SGLang": "lmsysorg/sglang:v"}
STARTS = {"vLLM": "vllm serve M", "SGLang": "python3 -m sglang.launch_server --model-path M"}
REMOVED = [(engine, flag) for engine, options in SUCCESSORS.items() for flag in options]


def problems(engine: str, release: str, words: str) -> list[Problem]:
    facts = read_command(
        [*STARTS[engine].split(), *words.split()], {}, image=IMAGES[engine] + release
    )
    assert facts is not None
    return [problem for problem in facts.problems if problem.hard]


@for_each(("engine", "flag"), REMOVED)
def test_each_release_has_the_option_that_is_named_for_a_removed_one(
    engine: str, flag: str
) -> None:
    table = load(engine.lower())
    spans = table.history(flag)
    remedies = set()
    for at in range(spans[0][1] + 1, len(table.texts)):
        if any(since <= at <= until for since, until in spans):
            continue
        here = problems(engine, table.texts[at], f"{flag} 1")
        told = next(problem for problem in here if problem.flag == flag)
        assert "is the last release with it" in told.text
        remedies.add(told.remedy)
        if "or use" not in told.remedy:
            named = re.findall(r"--[a-z0-9-]+", told.remedy)
            known = {name for row in table.at(table.versions[at]) for name in row.names}
            assert known.issuperset(named), (table.texts[at], told.remedy)
    assert SUCCESSORS[engine][flag] in remedies, "no release needs it"


@pytest.mark.parametrize("flag", ["--rope-scaling", "--rope_scaling"])
def test_underscores_do_not_hide_a_successor(flag: str) -> None:
    [told] = problems("vLLM", "0.33.0", f"{flag} {{}}")
    assert told.remedy == "write rope_parameters in --hf-overrides"


def test_a_removed_option_is_no_ambiguous_abbreviation() -> None:
    [told] = problems("SGLang", "0.5.23", "--cuda-graph-max-bs 8")
    assert "has no option '--cuda-graph-max-bs': 0.5.19 is the last release with it" in told.text
    assert told.remedy == "write --cuda-graph-max-bs-decode"


@pytest.mark.parametrize(
    ("release", "text"),
    [
        ("0.5.4", "SGLang has retired --enable-ep-moe"),
        ("0.5.5", "0.5.4 is the last release with it"),
    ],
)
def test_a_retired_option_is_one_problem_with_one_remedy(release: str, text: str) -> None:
    [told] = problems("SGLang", release, "--enable-ep-moe")
    assert text in told.text
    assert told.remedy == "write --ep-size with the value of --tp-size"


NEWEST = {"vLLM": "0.33.0", "SGLang": "0.5.23"}
FOREIGN = [
    (engine, flag, told)
    for engine, options in EQUIVALENTS.items()
    if engine in STARTS
    for flag, told in options.items()
]


@pytest.mark.parametrize(("engine", "flag", "told"), FOREIGN)
def test_what_replaces_an_option_of_another_engine_is_accepted(
    engine: str, flag: str, told: str
) -> None:
    [problem] = problems(engine, NEWEST[engine], flag)
    assert (problem.flag, problem.remedy) == (flag, told)

    instead = re.findall(r"^write (--[a-z0-9-]+)", told)
    assert instead or told.startswith("remove it")
    table = load(engine.lower())
    for row in table.at(table.versions[-1]):
        if instead and instead[0] in row.names + row.off:
            value = "" if row.arity == "0" else "8"
            assert problems(engine, NEWEST[engine], f"{instead[0]} {value}") == []
            break
    else:
        assert not instead


@pytest.mark.parametrize(("engine", "other"), [("vLLM", "sglang"), ("SGLang", "vllm")])
def test_no_option_of_another_engine_is_taken_for_a_similar_one(engine: str, other: str) -> None:
    table = load(other)
    flags = {name for row in table.at(table.versions[-1]) for name in row.names if name[:2] == "--"}
    similar = []
    for flag in sorted(flags):
        for told in problems(engine, NEWEST[engine], flag):
            if (
                told.flag == flag
                and "has no option" in told.text
                and "release with" not in told.text
            ):
                foreign = f"it is an option of {TITLES[other]}" in told.remedy
                if not foreign and told.remedy != EQUIVALENTS[engine].get(flag):
                    similar.append((flag, told.remedy))
    assert similar == []
