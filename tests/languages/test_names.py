"""Names of other languages and ours: args one way, paths and strings the other way."""

from typing import Any

import pytest

from kthena_components.core.findings import Finding
from kthena_components.languages import Names, in_words, read_schema, snake_case

SERVING = Names.of("kthena:index:ModelServing")


def every_name() -> set[str]:
    schema = read_schema()
    parts: list[dict[str, Any]] = [*schema["types"].values(), *schema["resources"].values()]
    groups = ("properties", "inputProperties")
    return {name for part in parts for group in groups for name in part.get(group, {})}


def test_every_name_leads_back_to_itself() -> None:
    for name in every_name():
        first, *others = snake_case(name).split("_")
        assert first + "".join(other.capitalize() for other in others) == name


def test_fields_are_renamed_and_keys_of_users_are_not() -> None:
    labels, template = {"workerReplicas": "x"}, {"spec": {"nodeSelector": {"gpusPerPod": "8"}}}
    role = {"name": "serve", "workerReplicas": 1.0, "entryTemplate": template}
    inputs = {"roles": [role], "labels": labels, "backendOptions": {"max_replicas": {"aB": 1}}}
    assert SERVING.to_args(inputs) == {
        "roles": [{"name": "serve", "worker_replicas": 1.0, "entry_template": template}],
        "labels": labels,
        "backend_options": {"max_replicas": {"aB": 1}},
    }


def test_role_names_are_keys_of_users() -> None:
    inputs = {"gangPolicy": {"minRoleReplicas": {"minRoleReplicas": 1}}}
    assert SERVING.to_args(inputs) == {"gang_policy": {"min_role_replicas": {"minRoleReplicas": 1}}}


@pytest.mark.parametrize("odd", [{"roles": "text"}, {"roles": [3, None]}, {"nothing": {"aB": 1}}])
def test_what_fits_no_field_stays_for_the_specs_to_refuse(odd: dict[str, Any]) -> None:
    assert SERVING.to_args(odd) == odd


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("", ""),
        ("replicas", "replicas"),
        ("roles[0].worker_replicas", "roles[0].workerReplicas"),
        ("roles[12].engine.extra_args[3]", "roles[12].engine.extraArgs[3]"),
        ("roles[0].overlay.spec.worker_replicas", "roles[0].overlay.spec.worker_replicas"),
        ("roles[0].entry_template.spec", "roles[0].entryTemplate.spec"),
        ("labels.worker_replicas", "labels.worker_replicas"),
        ("gang_policy.min_role_replicas.a_b", "gangPolicy.minRoleReplicas.a_b"),
        ("backend_options.autoscaling.max_replicas", "backendOptions.autoscaling.max_replicas"),
        ("roles[0].no_such_field.worker_replicas", "roles[0].no_such_field.worker_replicas"),
        ("<key>", "<key>"),
    ],
)  # fmt: skip
def test_a_path_is_shown_as_the_user_wrote_it(ours: str, theirs: str) -> None:
    finding = Finding(path=ours, seen="is 0", rule="range")
    assert SERVING.shown(finding).path == theirs


def test_texts_name_fields_as_the_user_writes_them() -> None:
    assert in_words("role 'serve' has both an engine and entry_template") == (
        "role 'serve' has both an engine and entryTemplate"
    )
    assert in_words("--max_model_len and num_attention_heads stay") == (
        "--max_model_len and num_attention_heads stay"
    )
