"""The rules about production on the command line: at level prod, with what other files hold."""

from pathlib import Path

import pytest
import yaml

from kthena_components.core.rules.production import PRODUCTION_NAMES
from tests.cli.conftest import Command, Write
from tests.rules.cases import documents

ROOT = Path(__file__).parents[2]
CHAT, *OTHERS = documents("production-cluster")


@pytest.fixture
def chat(write: Write) -> str:
    """Write a Deployment that two other files complete."""
    write("chat.yaml", yaml.safe_dump(CHAT))
    return "chat.yaml"


@pytest.fixture
def others(write: Write) -> str:
    write("others.yaml", yaml.safe_dump_all(OTHERS))
    return "others.yaml"


def told(run: Command, *arguments: str) -> dict[str, str]:
    """Return the lines of the rules about production, by rule."""
    lines = run(*arguments).lines
    by_rule = {line.rpartition("[")[2].removesuffix("]"): line for line in lines}
    return {rule: line for rule, line in by_rule.items() if rule in PRODUCTION_NAMES}


@pytest.mark.parametrize("level", [(), ("--level", "dev"), ("--level", "staging")])
def test_only_prod_reviews(run: Command, chat: str, level: tuple[str, ...]) -> None:
    assert told(run, chat, *level) == {}


def test_prod_reviews_with_one_line_for_each_rule(run: Command, chat: str) -> None:
    done = told(run, chat, "--level", "prod")
    assert set(done) == PRODUCTION_NAMES
    assert done["production-resources"] == (
        "chat.yaml:17: advisory: Deployment serving/chat: spec.template.spec.containers[0]: "
        "container 'engine' has no CPU request or memory request, so its node may have too little "
        "for the engine. Write resources.requests.cpu and resources.requests.memory, "
        "which restarts the pods. [production-resources]"
    )


def test_a_file_asks_for_one_of_them(run: Command, write: Write, chat: str) -> None:
    write("levels.json", '{"production-labels": "mandatory"}')
    done = run(chat, "--level", "levels.json")
    assert done.status == 1
    assert set(told(run, chat, "--level", "levels.json")) == {"production-labels"}


def test_a_default_of_the_namespace_and_of_the_cluster_count(
    run: Command, chat: str, others: str
) -> None:
    done = told(run, chat, others, "--level", "prod")
    assert not {"production-resources", "production-availability"} & set(done)


def test_what_an_overlay_may_complete_is_reviewed_only_if_it_is_named(
    run: Command, write: Write
) -> None:
    write("m/base/kustomization.yaml", "resources: [chat.yaml]")
    write("m/base/chat.yaml", yaml.safe_dump(CHAT))
    write("m/other/chat.yaml", yaml.safe_dump(CHAT))
    prod = ("--level", "prod", "--no-render")
    assert told(run, "m/base", *prod) == {}
    assert set(told(run, "m/base/chat.yaml", *prod)) == PRODUCTION_NAMES
    assert {line.partition(":")[0] for line in told(run, "m", *prod).values()} == {
        "m/other/chat.yaml"
    }


def test_a_budget_is_missed_only_where_all_is_there(run: Command, write: Write, chat: str) -> None:
    budget, priority, _ = OTHERS
    write("priority.yaml", yaml.safe_dump(priority))
    write("budget.yaml", yaml.safe_dump(budget))
    prod = ("--level", "prod")
    assert "production-availability" not in told(run, chat, "priority.yaml", *prod)
    whole = told(run, chat, "priority.yaml", *prod, "--whole")
    assert "container 'engine' has no PodDisruptionBudget, so" in whole["production-availability"]
    files = (chat, "priority.yaml", "budget.yaml")
    assert "production-availability" not in told(run, *files, *prod, "--whole")
