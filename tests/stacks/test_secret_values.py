"""Secret values of a stack's config in the wrong place: refused, and never shown."""

import json
from typing import Any

import pytest

from kthena_components.core.plan.stack_file import OutputMode, StackSpec
from kthena_components.core.values.display import SECRET
from kthena_components.resources.cluster import check_cluster
from tests.stacks.handed import config_of, handed, refusal, written
from tests.support.specs import changed

PIECES = ("pearl", "quartz", "raven", "sable", "1753")
IN_CONFIG = (
    "contains a secret value, which would be plain text in the manifests. Give the value "
    "its own config key, name that key in secrets, and use that Secret by secretKeyRef. "
    "[secret-in-config]"
)


def refused(field: str, value: Any, stack: str = "dev", **changes: Any) -> list[str]:
    """Give the refusal of a stack that has a secret value in a field."""
    text = value if isinstance(value, str) else json.dumps(value)
    lines = refusal(handed(stack, changes, {field: text}))
    assert not [piece for piece in PIECES if piece in "\n".join(lines)]
    assert f"{field}: {IN_CONFIG}" in lines
    return [line for line in lines if line != f"{field}: {IN_CONFIG}"]


def test_a_secret_serving_is_checked_and_not_shown() -> None:
    (serving,) = written("dev")["servings"]
    wrong = changed(
        serving,
        {
            "name": "Pearl_quartz",
            "replicas": "raven",
            "sable": 1,
            "roles[0].engine.parallelism.tensor": 1753,
        },
    )
    lines = refused("servings", [wrong])
    rules = {line.rpartition(" ")[2] for line in lines}
    assert rules > {"[pattern]", "[type]", "[unknown-field]", "[world-size-equals-gpus]"}
    assert all(SECRET in line for line in lines)
    lines = refused("servings", [changed(serving, {"roles[0].engine.parallelism.tensor": 1753})])
    assert lines[0] == (
        "servings[0].roles[0].engine.parallelism: breaks this rule with a value that is secret and "
        "so not shown: [secret]. Compare it with the rule: The ranks of an engine, TP × PP × DP, "
        "equal its pods × GPUs per pod. [world-size-equals-gpus]"
    )


SECRET_FIELDS: dict[str, tuple[str, Any]] = {
    "no JSON": ("servings", "pearl: [quartz"),
    "a string": ("servings", '"pearl"'),
    "servings of another form": ("servings", [{"pearl": {"quartz": "raven"}}, "sable"]),
    "a topology": ("topology", {"hyper_nodes": [{"name": "pearl_", "tier": "quartz"}]}),
    "queues": ("queues", [{"name": "pearl", "weight": "quartz", "parent": "pearl"}]),
    "secrets": ("secrets", [{"name": "Pearl!", "data": {"a quartz": "raven"}}]),
    "the output": ("output", "pearl"),
    "a budget": ("gpu_budget", "quartz"),
}


@pytest.mark.parametrize("case", SECRET_FIELDS)
def test_a_secret_field_is_checked_and_not_shown(case: str) -> None:
    field, value = SECRET_FIELDS[case]
    assert all(SECRET in line for line in refused(field, value))


def test_a_secret_that_is_one_name_too_many_is_not_shown() -> None:
    named = written("dev")["servings"] * 2
    lines = refused("servings", [{**serving, "name": "pearl"} for serving in named])
    assert [line.rpartition(" ")[2] for line in lines] == ["[name-once]"]


def test_a_config_shows_no_value_when_it_is_printed() -> None:
    config = config_of("dev", {"kubeconfig": "pearl"}, frozenset({"kubeconfig"}))
    assert "pearl" not in repr(config)
    assert "pearl" not in repr(StackSpec(kubeconfig="pearl"))


KUBECONFIG = json.dumps({
    "current-context": "pearl",
    "contexts": [{"name": "pearl", "context": {"cluster": "quartz", "user": "me"}}],
    "clusters": [{"name": "quartz", "cluster": {"server": "https://raven:sable@127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {"token": "sable"}}],
}, indent=1)  # fmt: skip


def told(kubeconfig: str, *, secret: bool = True, **fields: Any) -> str:
    spec = StackSpec(output=OutputMode.CLUSTER, kubeconfig=kubeconfig, **fields)
    found = str(check_cluster(spec, {}, secret=secret))
    assert not [piece for piece in PIECES if piece in found]
    return found


NO_ANSWER = (
    "output: is cluster, but context '[secret]' of the config value kubeconfig, [secret], does not "
    "answer: Connection refused. Start it or connect to it, choose another one with kubeconfig and "
    "context, or write output: render. [cluster-unreachable]"
)


def test_a_kubeconfig_in_the_config_is_not_shown() -> None:
    assert told(KUBECONFIG) == NO_ANSWER
    assert told(KUBECONFIG.replace("\n", "")) == NO_ANSWER
    assert told(KUBECONFIG, context="other") == (
        "context: there is no context 'other' of the config value kubeconfig. Known: [secret]. "
        "[kubeconfig]"
    )
    assert told(KUBECONFIG.replace('"current-context": "pearl",', "")) == (
        "output: is cluster, but the config value kubeconfig has no current context. Write "
        "context; known: [secret], or write output: render. [cluster-unreachable]"
    )
    assert "[secret], has no credentials" in told(KUBECONFIG.replace('"token"', '"tolken"'))
    assert "[secret], was not checked" in told(KUBECONFIG.replace('127.0.0.1:1"', '[::x"'))


def test_a_secret_path_of_a_kubeconfig_is_not_shown(tmp_path: Any) -> None:
    path = tmp_path / "pearl"
    assert told(str(path)) == (
        "kubeconfig: there is no file '[secret]'. Write the path of one. [kubeconfig]"
    )
    path.mkdir()
    assert told(str(path)) == (
        "kubeconfig: '[secret]' cannot be read: Is a directory. Make it readable. [kubeconfig]"
    )
    (path / "quartz").write_text("raven: [")
    assert told(str(path / "quartz")) == (
        "kubeconfig: [secret] contains no kubeconfig. Write the path of one. [kubeconfig]"
    )


def test_what_stands_before_the_host_of_a_server_is_never_shown(tmp_path: Any) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.replace("pearl", "here"))
    assert f"context 'here' of {path}, https://127.0.0.1:1, does not" in told(
        str(path), secret=False
    )
