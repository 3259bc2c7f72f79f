"""Laws of the reader and the writer, on generated examples."""

import gc
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kthena_components.core.engines import (
    CommandFacts,
    Launch,
    read_command,
    unsupported,
    write_commands,
)
from kthena_components.core.values.unknown import Unknown

pytestmark = pytest.mark.property

NAMES = st.text(
    st.characters(exclude_characters="$\x00\r", exclude_categories=["Cs", "Co"]), min_size=1
).filter(lambda text: text.strip() and not text.startswith("-"))
EXTRA = st.lists(
    st.sampled_from(
        [
            ("--trust-remote-code",),
            ("--served-model-name", 'it\'s "a" name; && | > $(ENTRY_ADDRESS)'),
            ("--served-model-name=x y",),
            ("--dtype", "bfloat16"),
        ]
    ),
    max_size=3,
)


@st.composite
def launches(draw: st.DrawFn, least_pods: int = 1) -> Launch:
    """Draw a launch that can be written. Its numbers need not fit its GPUs."""
    kind = draw(st.sampled_from(["vllm", "sglang"]))
    pods = draw(st.integers(least_pods, 4))
    copies = draw(st.sampled_from([1, 2, 3] if kind == "vllm" or pods == 1 else [1]))
    tensor = draw(st.sampled_from([1, 2, 4, 8]))
    pipeline = pods if kind == "sglang" else draw(st.integers(1, 4))
    launch = Launch(
        kind=kind,
        launcher="native" if kind == "sglang" else draw(st.sampled_from(["native", "ray"])),
        model=draw(NAMES),
        tensor=tensor,
        pipeline=pipeline,
        data=1 if copies == 1 else copies * pods,
        expert=draw(st.booleans()),
        pods=pods,
        gpus_per_pod=draw(st.integers(0, 8)) if copies == 1 else tensor * pipeline,
        port=8080,
        extra_args=tuple(word for words in draw(EXTRA) for word in words),
    )
    assert unsupported(launch) == []
    return launch


def read(argv: tuple[str, ...], launch: Launch, index: int) -> CommandFacts:
    env: dict[str, str | Unknown] = {
        "GROUP_SIZE": str(launch.pods),
        "ENTRY_ADDRESS": "entry",
        "WORKER_INDEX": str(index),
    }
    facts = read_command(argv, env)
    assert facts is not None
    assert facts.problems == ()
    return facts


def shape_of(facts: CommandFacts) -> dict[str, Any]:
    names = ("engine", "model", "tensor", "pipeline", "data", "nnodes", "node_rank", "headless")
    return {name: getattr(facts, name) for name in names}


def expected(launch: Launch, index: int) -> dict[str, Any]:
    joined = launch.pods > 1 and launch.launcher == "native" and launch.data == 1
    return {
        "engine": launch.kind,
        "model": launch.model,
        "tensor": launch.tensor,
        "pipeline": launch.pipeline,
        "data": launch.data,
        "nnodes": launch.pods if joined else None,
        "node_rank": index if joined else None,
        "headless": launch.kind == "vllm" and index > 0,
    }


@given(launches())
def test_the_entry_says_what_was_launched(launch: Launch) -> None:
    facts = read(write_commands(launch).entry, launch, 0)

    assert shape_of(facts) == expected(launch, 0)
    assert facts.world == launch.tensor * launch.pipeline * launch.data
    ranks = launch.tensor * (launch.data if launch.kind == "vllm" else 1)
    assert facts.expert_size == (ranks if launch.expert else 1)
    by_ray = launch.launcher == "ray" and launch.pods > 1
    assert (facts.ray_role, facts.ray_cluster_size) == (
        ("head", launch.pods) if by_ray else (None, None)
    )


@given(launches(least_pods=2), st.data())
def test_each_worker_says_what_was_launched(launch: Launch, data: st.DataObject) -> None:
    index = data.draw(st.integers(1, launch.pods - 1))
    facts = read(write_commands(launch).worker or (), launch, index)

    if launch.launcher == "ray":
        assert (facts.engine, facts.ray_role) == (None, "worker")
        return
    assert shape_of(facts) == expected(launch, index)
    if launch.data > 1:
        local = launch.data // launch.pods
        assert (facts.data_local, facts.data_start_rank) == (local, index * local)
        assert facts.data_mode == "internal"


@given(launches())
def test_sizes_are_known_before_any_pod_exists(launch: Launch) -> None:
    for command in filter(None, (write_commands(launch).entry, write_commands(launch).worker)):
        facts = read_command(command, {})
        assert facts is not None
        if facts.engine is not None:
            assert facts.world == launch.tensor * launch.pipeline * launch.data


@given(launches())
def test_writing_is_a_function(launch: Launch) -> None:
    assert write_commands(launch) == write_commands(launch)


MARKS = [
    *"$`'\"\\;&|()<>{}#=-!@*?%~ \t\n",
    *("vllm serve M", "sglang serve M", "trtllm-serve M", "ray start", "multi-node-serving.sh"),
    *("sh", "-c", "bash", "env", "exec", "python3", "-m", "vllm.entrypoints.openai.api_server"),
    *("leader", "worker", "--ray_cluster_size=", "--", "symmetric-run", "mpirun", "-n"),
    *("-tp", "-tp8", "--tp", "--data-parallel", "--config", "--hf-overrides", '{"a":', "-1", "8"),
    *("if", "then", "fi", "case", "esac", "for", "do", "done", "A=", "A+=", "export", "read"),
    *("$(", "${", "$((", "$@", "$A", "${A:-", "$(A)", "<<", "EOF", "$'", ":-", "))", "2>&1"),
    *("\ue000", "\ue001", "\ue002", "\ue003", "\ue0020\ue003", "\ue0000\ue001", "é", "\U0001f600"),
]
WORDS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(MARKS)).map("".join),
    st.lists(st.sampled_from(MARKS)).map(" ".join),
)
ENVS = st.dictionaries(
    st.sampled_from(["A", "B", "TP", "WORKER_INDEX"]), st.one_of(WORDS, st.just(Unknown("late")))
)


@given(st.lists(WORDS), ENVS)
@example(["-' '"], {})
def test_no_list_of_words_raises(argv: list[str], env: dict[str, str | Unknown]) -> None:
    read_command(["vllm", "serve", *argv], env)
    read_command(argv, env)


@given(st.lists(WORDS, min_size=1), ENVS)
def test_no_script_raises(argv: list[str], env: dict[str, str | Unknown]) -> None:
    read_command(["sh", "-c", "vllm serve M " + argv[0], *argv[1:]], env)
    read_command(["bash", "-lc", argv[0] + "; vllm serve M -tp 8", *argv[1:]], env)


@given(st.lists(WORDS), ENVS)
def test_marks_of_the_reader_never_reach_a_message(
    argv: list[str], env: dict[str, str | Unknown]
) -> None:
    facts = read_command(["vllm", "serve", "M", *argv], env)

    assert facts is not None
    texts = [facts.world.because] if isinstance(facts.world, Unknown) else []
    texts += [problem.text + problem.flag + problem.remedy for problem in facts.problems]
    assert not any(mark in text for mark in "\ue002\ue003" for text in texts)


@pytest.mark.parametrize(
    "words",
    [
        ["ray", "symmetric-run", "--"] * 5000,
        ["sh", "-c", "sh -c '" * 5000],
        ["sh", "-c", "sh -c " + "\\" * 5000 + "x vllm serve M"],
        ["sh", "-c", "vllm serve M " + "${A:-" * 5000 + "}" * 5000],
        ["sh", "-c", "vllm serve M " + "$(" * 5000 + ")" * 5000],
        ["sh", "-c", "vllm serve M $((" + "(" * 48 + "1" + ")" * 48 + "))"],
        ["vllm", "serve", "M", "--hf-overrides", "[" * 200_000],
        ["vllm", "serve", "M", "-tp", "9" * 20_000],
    ],
)
def test_nothing_is_nested_too_deep(words: list[str]) -> None:
    facts = read_command([*words, "vllm", "serve"], {})

    assert facts is None or facts.engine in {None, "vllm"}


LONG = {
    "dollars": "$",
    "references": "$(",
    "defaults": "${A:-",
    "variables": "$A ",
    "quotes": "'a'",
    "separators": "; ",
    "brackets": "(",
    "flags": "--tensor-paralel-size 8 ",
    "assignments": "A+=b;",
    "documents": "<<a\n",
}


def seconds(unit: str, size: int) -> float:
    script = "vllm serve M " + (unit * (size // len(unit) + 1))[:size]
    start = time.process_time()
    read_command(["sh", "-c", script], {"A": "$(B)", "B": "b" * 1000})
    return time.process_time() - start


@pytest.mark.parametrize("unit", LONG.values(), ids=LONG)
def test_a_script_that_is_four_times_as_long_costs_about_four_times(unit: str) -> None:
    short, long = (min(seconds(unit, size) for _ in range(3)) for size in (25_000, 100_000))

    # Twice the fair share, for noise; a quadratic reader needs sixteen times.
    assert long < 8 * short + 0.05


def test_a_script_of_five_megabytes_is_answered_at_once() -> None:
    assert seconds("echo $A | tee 'x' && ", 5_000_000) < 1


def test_nothing_that_is_read_is_left_to_the_collector() -> None:
    """`check` hardly ever runs it, so cycles would fill the memory with each command line."""
    lines = [
        ["vllm", "serve", "m", "-tp=8"],
        ["bash", "-c", "for i in 1 2; do :; done; vllm serve m"],
    ]

    def read() -> None:
        assert all(read_command(line, {}) is not None for line in lines)

    read()
    gc.collect()
    gc.disable()
    try:
        read()
        assert gc.collect() == 0
    finally:
        gc.enable()
