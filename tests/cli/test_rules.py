"""The rules as users read them."""

import pytest

from kthena_components.checker.catalogue import all_rules, find_rule
from tests.cli.conftest import Command


def test_every_rule_is_listed_in_a_line(run: Command) -> None:
    done = run("--rules")
    assert [line.split()[0] for line in done.lines] == ["rule", *(r.name for r in all_rules())]
    assert done.status == 0


def test_a_rule_is_explained(run: Command) -> None:
    done = run("--explain", "leader-worker-same-gpus")
    assert done.lines == [
        f"leader-worker-same-gpus: {find_rule('leader-worker-same-gpus').summary}",
        "",
        (
            "This is true for the engines that are known here. "
            "Leaders of JetStream and Pathways run on CPUs."
        ),
        "",
        "level: mandatory",
        "checks: any serving",
        "pass: 8 GPUs in the entry pod, 8 in each worker.",
        "fail: 4 GPUs in the entry pod, 8 in each worker.",
        "source: vllm/config/parallel.py, local world size = world size / nodes.",
        "code: kthena_components/core/rules/leader_worker_same.py",
        "cases: tests/core/rules/cases/leader-worker-same-gpus.yaml",
    ]
    assert done.status == 0


def test_a_rule_is_explained_with_both_levels_and_those_of_environments(run: Command) -> None:
    lines = run("--explain", "surge-needs-spare-gpus").lines
    assert "environments: dev advisory, prod mandatory" in lines
    assert any(line.startswith("level: mandatory if maxUnavailable is 0, else") for line in lines)


def test_a_rule_that_is_not_there_is_named_with_the_nearest(run: Command) -> None:
    done = run("--explain", "node-whole")
    told = "there is no rule 'node-whole'; write 'nodes-whole'"
    assert (done.status, done.err) == (2, f"kthena-components check: {told}\n")
    done = run("--explain", "x")
    assert done.err == "kthena-components check: there is no rule 'x'; --rules lists all rules\n"


@pytest.mark.parametrize("arguments", [(), ("--format", "xml", "."), ("--no-such",)])
def test_wrong_use_has_a_status_of_its_own(run: Command, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert "usage: kthena-components " in done.err


def test_help_tells_the_exit_status(run: Command) -> None:
    assert "2 takes precedence over 1" in run("--help").out
