"""LMDeploy: how many GPUs its sizes take together."""

import pytest

from kthena_components.core.engines import read_command
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.values.unknown import Unknown

START = ["lmdeploy", "serve", "api_server", "internlm/m"]


def read(*words: str) -> CommandFacts:
    facts = read_command([*START, *words], {})
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("words", "world"),
    [
        ([], 1),
        (["--tp", "4"], 4),
        (["--tp=8", "--ep", "8"], 8),
        (["--ep", "8", "--backend", "pytorch"], 8),
        (["--tp", "2", "--dp", "8", "--ep", "8", "--backend", "pytorch"], 8),
        (["--tp", "8", "--dp", "2", "--backend", "pytorch"], 8),
        (["--tp", "16", "--nnodes", "2", "--node_rank", "1"], 16),
    ],
)
def test_the_sizes_overlap(words: list[str], world: int) -> None:
    facts = read(*words)
    assert (facts.engine, facts.model, facts.world) == ("lmdeploy", "internlm/m", world)
    assert facts.problems == ()


def test_attention_has_what_the_copies_leave() -> None:
    facts = read("--tp", "8", "--dp", "2", "--backend", "pytorch")
    assert (facts.tensor, facts.data) == (4, 2)


def test_turbomind_lays_copies_over_the_gpus_that_there_are() -> None:
    assert isinstance(read("--tp", "4", "--dp", "2").world, Unknown)


def test_it_is_found_behind_python_and_in_shells() -> None:
    for argv in (["python3", "-m", *START, "--tp", "2"], ["sh", "-c", f"{' '.join(START)} --tp 2"]):
        facts = read_command(argv, {})
        assert facts is not None
        assert facts.tensor == 2
    assert read_command(["lmdeploy", "serve", "proxy"], {}) is None


def test_several_pods_and_unknown_sizes() -> None:
    facts = read("--tp", "16", "--nnodes", "2", "--node-rank", "$(RANK)")
    assert (facts.nnodes, isinstance(facts.node_rank, Unknown)) == (2, True)
    assert isinstance(read("--tp", "$(TP)").world, Unknown)
