"""Secrets in a user's program: Outputs are never looked at, and values in plain text not shown."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi_kubernetes.core.v1 import PodSpecArgs, PodTemplateSpecArgs

from kthena_components import RefusedError
from kthena_components.core.values.display import SECRET
from kthena_components.resources._outputs import to_tokens
from tests.resources.build import group, queue, role, serving, topology
from tests.support.recorder import attempt, record, secrets_in
from tests.support.specs import ENGINE_RAY, GROUP, ROLE, changed

PIECES = ("pearl", "quartz", "raven", "sable", "1753")
LINE = "vllm serve org/m -tp pearl --quarz raven"
ENGINE = "roles[0].engine"


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the program config as the language host does, most of it secret."""
    values = {
        "p:line": LINE,
        "p:name": "Pearl_quartz",
        "p:size": "1753",
        "p:parts": json.dumps(
            {"url": "https://me:sable@raven", "size": 1753, "on": True, "no": ""}
        ),
        "p:open": "vllm:v1",
    }
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(values))
    secret = [key for key in values if key != "p:open"]
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(secret))


def refused(program: Callable[[], object]) -> list[str]:
    tried = attempt(program)
    assert isinstance(tried.error, RefusedError), tried.error
    told = [str(tried.error), str(tried.error.errors), str(tried.logs)]
    assert not [piece for piece in PIECES if piece in "\n".join(told)]
    return [str(finding) for finding in tried.error.findings]


WRONG: dict[str, dict[str, Any]] = {
    "a name": {"name": "Pearl_quartz"},
    "a size": {f"{ENGINE}.parallelism.tensor": 1753},
    "a size as text": {f"{ENGINE}.parallelism.tensor": "1753"},
    "a command": {f"{ENGINE}.extra_args": ["--quarz", f"raven {LINE}"], "replicas": "Pearl_quartz"},
    "a URL": {f"{ENGINE}.image": "https://me:sable@raven", "replicas": "https://me:sable@raven/x"},
    "a file": {f"{ENGINE}.hf_config": "https://me:sable@raven/config.json"},
    "a key": {"Pearl_quartz": 1, f"{ENGINE}.parallelism.Pearl_quartz": 1},
    "no data": {f"{ENGINE}.image": "Pearl_quartz\ue000"},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_secret_that_was_read_as_plain_text_is_refused_and_not_shown(case: str) -> None:
    lines = refused(lambda: serving(changed(ENGINE_RAY, WRONG[case])))
    assert any(SECRET in line for line in lines)


@pytest.mark.parametrize(
    "program",
    [
        lambda: group({**GROUP, "name": "Pearl_quartz"}),
        lambda: role({**ROLE, "serving": "Pearl_quartz"}),
        lambda: topology({"hyper_nodes": [{"name": "Pearl_quartz", "tier": 1, "nodes": []}]}),
        lambda: queue({"weight": "Pearl_quartz"}),
    ],
    ids=["group", "role", "topology", "queue"],
)
def test_no_component_shows_one(program: Callable[[], object]) -> None:
    assert any(SECRET in line for line in refused(program))


def test_what_holds_no_secret_is_said_in_full() -> None:
    wrong = changed(ENGINE_RAY, {"replicas": "no", f"{ENGINE}.image": "Pearl_quartz"})
    assert "replicas: is 'no', but must be a whole number. Write a whole number. [type]" in refused(
        lambda: serving(wrong)
    )


def test_a_secret_in_a_template_of_args_objects_is_not_shown() -> None:
    wrong: Any = {"name": "app", "image": "", "Pearl_quartz": ""}
    pod = PodTemplateSpecArgs(spec=PodSpecArgs(containers=[wrong]))
    roles = [{"name": "app", "entry_template": pod, "replicas": "Pearl_quartz"}]
    assert any(SECRET in line for line in refused(lambda: serving({"roles": roles})))


def test_notes_show_no_secret() -> None:
    twice = ["--max-model-len", "1753", "--max-model-len", "2048"]
    recorded = record(lambda: serving(changed(ENGINE_RAY, {f"{ENGINE}.extra_args": twice})))
    assert not [piece for piece in PIECES if piece in str(recorded.logs)]
    assert [info for info in recorded.infos() if SECRET in info]


def secret_serving() -> None:
    """Register a serving with secret Outputs in its variables and arguments."""
    secret = pulumi.Output.secret
    env = [
        {"name": "T", "value": secret("pearl")},
        {"name": "URL", "value": pulumi.Output.concat("https://", secret("raven"))},
    ]
    args = changed(ENGINE_RAY)
    args["roles"][0]["overlay"] = {"spec": {"containers": [{"name": "engine", "env": env}]}}
    args["roles"][0]["engine"]["extra_args"] = ["--api-key", secret("quartz")]
    serving(args)


def test_a_secret_output_stays_one_in_every_text_that_it_becomes_part_of() -> None:
    recorded = record(secret_serving)
    sets = recorded.of_kind("StatefulSet")
    for each in sets:
        held = " ".join(map(str, secrets_in(each.props)))
        assert "pearl" in held
        assert "https://raven" in held
    assert "quartz" in " ".join(map(str, secrets_in(sets[0].props)))
    assert not [piece for piece in PIECES if piece in str(recorded.logs)]


def test_what_stands_around_an_output_that_is_no_text_is_not_shown_when_it_is_secret() -> None:
    def program() -> None:
        plain, carried = to_tokens({"a": pulumi.Output.secret(7)})
        pulumi.export("value", carried.restore(f"--url=https://me:sable@raven --port={plain['a']}"))

    error = str(attempt(program).error)
    assert error.startswith("an Output inside the text '[secret]' gave a int, but only text can")
