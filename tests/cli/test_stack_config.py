"""What a review compares of a stack file is what the program gets, or the file is refused."""

import json
from typing import Any

import pytest

from kthena_components.cli.review.stack_file_settings import StackValues, stack_values
from kthena_components.core.plan.stack_file import StackConfig, read_values
from kthena_components.reading.project import Project, ProjectError, config_text

PROJECT = Project(name="p")


def values(config: str, project: Project = PROJECT) -> StackValues:
    return stack_values(f"config:\n  {config}\n", "Pulumi.s.yaml", project)


@pytest.mark.parametrize(
    "config",
    [
        "p:kubeconfig: !!binary YTogYgpjOiBkCg==",
        "kubernetes:kubeconfig: !!binary YTogYgpjOiBkCg==",
        "p:allow_plain_secrets: !!binary WyJhIl0=",
        "p:servings: !!binary W10=",
        "p:servings: [{name: a, waivers: !!binary e30=}]",
        "p:servings: [{name: a, waivers: {<<: {shm-present: 2027-01-01 x}}}]",
        "p:servings: [{name: a, waivers: {!!str shm-present: 2027-01-01 x}}]",
        *(f"p:gpu_budget: {number}" for number in ("8.0", "08", "1e1", "0x10", "1_0", "!!int 8")),
    ],
)
def test_settings_that_pulumi_reads_differently_are_refused_with_their_line(config: str) -> None:
    with pytest.raises(ProjectError, match=r"^Pulumi\.s\.yaml:2:\d+: has "):
        values(config)


@pytest.mark.parametrize(
    "budget",
    ["'8.0'", "'08'", "'1e1'", "small", "''", "", "-1", "'-1'", "true", "[8]", "9999999999",
     "{secure: AAA}", "0.5", "'NaN'"],
)  # fmt: skip
def test_a_budget_that_is_no_plain_integer_is_refused_and_not_skipped(budget: str) -> None:
    with pytest.raises(ProjectError, match=r"gpu_budget is .*, but must be a whole number from 0"):
        values(f"p:gpu_budget: {budget}")


@pytest.mark.parametrize(
    ("before", "after", "is_moved"),
    [("true", "'true'", False), ("1", "'1'", False), ("true", "1", True), ("1", "'01'", True)],
)
def test_a_value_that_pulumi_wrote_as_a_text_is_the_same_setting(
    before: str, after: str, *, is_moved: bool
) -> None:
    key = "kubernetes:enableServerSideApply"
    found = values(f"{key}: {after}").moved(values(f"{key}: {before}"))
    assert found == ([key] if is_moved else [])


@pytest.mark.parametrize("budget", ["8", "'8'", "' 8 '", '"\\t8"'])
def test_a_budget_is_the_number_that_the_program_gets(budget: str) -> None:
    assert values(f"p:gpu_budget: {budget}").own == {"gpu_budget": 8}


def test_a_budget_of_the_project_is_read_and_checked_too() -> None:
    assert values("a: b", Project(name="p", defaults={"p:gpu_budget": 8})).own["gpu_budget"] == 8
    with pytest.raises(ProjectError, match="gpu_budget is 'many'"):
        values("a: b", Project(name="p", defaults={"p:gpu_budget": "many"}))


CONFIGS: dict[str, Any] = {
    "servings": [{"name": "a", "waivers": {"shm-present": "2027-01-01 x"}}],
    "topology": None,
    "queues": None,
    "kubeconfig": "8",
    "context": "true",
    "output": "render",
    "allow_plain_secrets": '["a"]',
    "secrets": " [] ",
    "other": "{not json",
    "number": "1e1",
}


def test_values_are_those_that_the_stack_program_reads() -> None:
    text = json.dumps({"config": {f"p:{key}": value for key, value in CONFIGS.items()}})
    config = StackConfig(
        project="p", stack="s", file="f", secret_keys=frozenset(),
        values={key: config_text(value) for key, value in CONFIGS.items()},
    )  # fmt: skip
    assert stack_values(text, "Pulumi.s.yaml", PROJECT).own == read_values(config)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ("p:kubeconfig: 8", ["8"]),
        ("p:kubeconfig: true", ["true"]),
        ("p:kubeconfig: {users: []}", ['{"users": []}']),
        ("p:kubeconfig:", []),
        ("p:kubeconfig: {secure: AAA}", []),
        ("p:kubeconfig: {secure: {a: 1}}", ['{"secure": {"a": 1}}']),
        ("kubernetes:kubeconfig: 0.5", ["0.5"]),
        ("kubernetes:kubeconfig: [a]", ['["a"]']),
        ("kubernetes:config:kubeconfig: a", ["a"]),
    ],
)
def test_each_kubeconfig_is_the_text_that_pulumi_passes(config: str, found: list[str]) -> None:
    assert list(values(config).kubeconfigs()) == found


def test_null_in_json_is_refused_because_pulumi_passes_a_text() -> None:
    text = '{"config": {"kubernetes:kubeconfig": null}}'
    with pytest.raises(ProjectError, match="kubernetes:kubeconfig is null: remove the key, or"):
        stack_values(text, "Pulumi.s.json", PROJECT)


@pytest.mark.parametrize("key", ["SecretsProvider", "ENVIRONMENT", "encryptedKey", "Config"])
def test_a_key_in_another_case_is_refused_because_go_reads_it_in_json(key: str) -> None:
    with pytest.raises(ProjectError, match=f"contains the key '{key}': write"):
        stack_values(f'{{"{key}": {{}}}}', "Pulumi.s.json", PROJECT)


def test_settings_are_sorted_by_whom_they_are_for() -> None:
    text = "secretsprovider: a\nconfig: {p:gpu_budget: 8, q:a: b}\n"
    read = stack_values(text, "Pulumi.s.yaml", PROJECT)
    assert (read.own, read.others) == ({"gpu_budget": 8}, {"q:a": "b"})
    assert read.beside == {"secretsprovider": "a"}


@pytest.mark.parametrize("project", ["kubernetes", "pulumi"])
def test_settings_of_a_project_that_is_called_like_a_provider_are_those_of_the_provider(
    project: str,
) -> None:
    """Pulumi passes them to both: tests/pulumi/test_review_attacks.py."""
    after = stack_values(
        "config: {gpu_budget: 8, servings: [], cluster: a, pluginDownloadURL: b}\n",
        "Pulumi.s.yaml", Project(name=project),
    )  # fmt: skip
    assert after.own["gpu_budget"] == 8
    moved = [f"{project}:cluster", f"{project}:pluginDownloadURL"]
    assert after.moved(StackValues()) == moved
    is_known = project == "pulumi"
    assert after.starting(StackValues()) == ([] if is_known else moved[1:])


def test_a_text_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ProjectError, match="servings is nested too deeply to be read"):
        values(f"p:servings: '{'[' * 100_000}'")
