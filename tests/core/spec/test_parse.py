"""Structural refusals: what was seen, and what to write instead."""

from typing import Any

import pytest
from hypothesis import given

from kthena_components.core.findings import SpecError
from kthena_components.core.spec.enums import Launcher
from kthena_components.core.spec.parse import known_fields, parse_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec, QueueSpec, RoleSpec
from kthena_components.core.values.display import display
from tests.support.for_each import for_each
from tests.support.specs import ENGINE_RAY, REMOVED, TEMPLATES_PLAIN, Args, changed
from tests.support.strategies import LATE, json_trees, law


def said(args: object) -> str:
    """Give the refusal, or an empty string."""
    try:
        parse_spec(ModelServingSpec, args)
    except SpecError as refusal:
        return str(refusal)
    return ""


LETTER_FIRST = "lower-case letters, digits and dashes, starting with a letter"
NOT_A_COUNT = "is {}, but must be a count or a percentage such as 25%. Write such a value. [value]"
BUDGET = "roles[0].max_unavailable"
QUANTITY = "but must be a Kubernetes quantity such as 125, 500m or 15Gi."
ROLE_FIELDS = ", ".join(sorted(RoleSpec.model_fields))
ONE_OF = "but must be one of 'vllm', 'sglang', 'trtllm'."

MESSAGES: dict[str, tuple[Args, str]] = {
    "near-field": (
        {"replica": 1},
        (
            "there is no field 'replica' here. Remove it, because replicas is stated, too."
            " [unknown-field]"
        ),
    ),
    "other-case": (
        {"gangPolicy": {}},
        "there is no field 'gangPolicy' here. Write 'gang_policy'. [unknown-field]",
    ),
    "far-field": (
        {"expose.zzz": 1},
        "there is no field 'zzz' here. Remove it; known: port, role, target_port. [unknown-field]",
    ),
    "field-named-as-a-type": (
        {"roles[0].int": 1},
        f"there is no field 'int' here. Remove it; known: {ROLE_FIELDS}. [unknown-field]",
    ),
    "key-named-as-a-type": (
        {"gang_policy.min_role_replicas.int": "x"},
        "is 'x', but must be a whole number. Write a whole number. [type]",
    ),
    "missing": ({"roles[0].name": REMOVED}, "is missing. Add 'name'. [required]"),
    "text-for-a-number": (
        {"replicas": "two"},
        "is 'two', but must be a whole number. Write a whole number. [type]",
    ),
    "quoted-number": (
        {"replicas": "2"},
        "is '2', but must be a whole number. Write 2 without quotes. [type]",
    ),
    "fraction": (
        {"replicas": 1.5},
        "is 1.5, but must be a whole number. Write a whole number. [type]",
    ),
    "true-for-a-number": (
        {"replicas": True},
        "is true, but must be a whole number. Write a whole number. [type]",
    ),
    "null-for-a-number": (
        {"replicas": None},
        "is null, but must be a whole number. Remove it, or write a whole number. [type]",
    ),
    "number-for-text": (
        {"roles[0].resources.cpu": 125},
        "is 125, but must be text. Put it in quotes: '125'. [type]",
    ),
    "text-for-a-switch": (
        {"roles[0].engine.parallelism.expert": "yes"},
        "is 'yes', but must be true or false. Write true. [type]",
    ),
    "mapping-for-a-list": ({"roles": {}}, "is a map, but must be a list. Write a list. [type]"),
    "list-for-a-map": (
        {"gang_policy.min_role_replicas": []},
        "is a list, but must be a map. Write a map. [type]",
    ),
    "list-for-a-mapping": (
        {"expose": []},
        (
            "is a list, but must be a map of fields. Write a map of fields; known: port, role, "
            "target_port. [type]"
        ),
    ),
    "too-small": ({"replicas": -1}, "is -1, but must be at least 0. Write at least 0. [range]"),
    "too-large": (
        {"expose.port": 65536},
        "is 65536, but must be at most 65535. Write at most 65535. [range]",
    ),
    "near-word": (
        {"roles[0].engine.kind": "vlm"},
        f"is 'vlm', {ONE_OF} Write 'vllm'. [known-value]",
    ),
    "far-word": (
        {"roles[0].engine.kind": "mpi"},
        f"is 'mpi', {ONE_OF} Choose one of them. [known-value]",
    ),
    "number-for-a-word": (
        {"kthena_version": 1.0},
        (
            "is 1.0, but must be one of '0.1', '0.2', '0.3', '0.4', '1.0'. Write '1.0', in quotes. "
            "[known-value]"
        ),
    ),
    "number-that-pulumi-has-shortened": (
        {"kthena_version": 1},
        (
            "is 1, but must be one of '0.1', '0.2', '0.3', '0.4', '1.0'. Write '1.0', in quotes. "
            "[known-value]"
        ),
    ),
    "upper-case-name": (
        {"name": "My Chat"},
        f"is 'My Chat', but must be {LETTER_FIRST}. Write, for example, 'my-chat'. [pattern]",
    ),
    "digit-first": (
        {"name": "405b"},
        f"is '405b', but must be {LETTER_FIRST}. Write, for example, 'r405b'. [pattern]",
    ),
    "no-name-in-it": (
        {"name": "---"},
        f"is '---', but must be {LETTER_FIRST}. Write such a value. [pattern]",
    ),
    "long-name": (
        {"name": "c" * 70},
        "is 70 characters long; at most 63 are allowed. Shorten it by 7. [length]",
    ),
    "empty-text": ({"roles[0].engine.model": ""}, "is empty. Write some string. [length]"),
    "empty-list": ({"roles": []}, "is empty. Give at least one. [length]"),
    "no-quantity": (
        {"roles[0].resources.memory": "8 GB"},
        f"is '8 GB', {QUANTITY} Write, for example, '8G'. [pattern]",
    ),
    "unit-in-lower-case": (
        {"roles[0].resources.memory": "8gi"},
        f"is '8gi', {QUANTITY} Write, for example, '8Gi'. [pattern]",
    ),
    "cores": (
        {"roles[0].resources.cpu": "8 cores"},
        f"is '8 cores', {QUANTITY} Write, for example, '8'. [pattern]",
    ),
    "relative-path": (
        {"roles[0].cache.host_path": "models"},
        (
            "is 'models', but must be an absolute path such as /mnt/models. Write, for example, "
            "'/models'. [pattern]"
        ),
    ),
    "claim-in-upper-case": (
        {"roles[0].cache.claim": "Weights"},
        (
            "is 'Weights', but must be lower-case letters, digits, dashes and dots, with a letter "
            "or digit at both ends of each part. Write, for example, 'weights'. [pattern]"
        ),
    ),
    "blank-in-a-device": (
        {"roles[0].network.interface": "eth 0"},
        "is 'eth 0', but must be text without blanks. Write such a value. [pattern]",
    ),
    "token-as-the-name-of-a-secret": (
        {"roles[0].hugging_face_token.name": "hf_ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
        (
            "is a Hugging Face token itself, which everyone who reads this can use. Put the token "
            "into a Secret, write the name of that, and revoke this token. [pattern]"
        ),
    ),
    "token-in-place-of-a-secret": (
        {"roles[0].hugging_face_token": "hf_ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
        (
            "is a Hugging Face token itself, which everyone who reads this can use. Put the token "
            "into a Secret, write the name of that, and revoke this token. [type]"
        ),
    ),
    "budget-of-another-type": ({BUDGET: True}, NOT_A_COUNT.format("true")),
    "budget-in-a-list": ({BUDGET: []}, NOT_A_COUNT.format("a list")),
}


@for_each(("changes", "message"), MESSAGES.values(), ids=MESSAGES)
def test_a_wrong_value_is_refused_with_what_to_write(changes: Args, message: str) -> None:
    (path,) = changes
    assert said(changed(ENGINE_RAY, changes)) == f"{path}: {message}"


IN_TEMPLATES: dict[str, tuple[Args, str]] = {
    "containers": (
        {"roles[0].entry_template.spec.containers": {"app": {}}},
        "is a map, but must be a list. Write a list. [type]",
    ),
    "env": (
        {"roles[0].worker_template.spec.containers[0].env": {"A": "b"}},
        "is a map, but must be a list. Write a list: [{name: A, value: …}]. [type]",
    ),
    "argument": (
        {"roles[0].entry_template.spec.containers[0].args": [8080]},
        "is 8080, but must be text. Put it in quotes: '8080'. [type]",
    ),
    "amount": (
        {"roles[0].entry_template.spec.containers[0].resources": {"limits": {"cpu": "x"}}},
        f"is 'x', {QUANTITY} Write such a value. [value]",
    ),
    "label": (
        {"roles[0].entry_template.metadata.labels": {"version": 1}},
        "is 1, but must be text. Put it in quotes: '1'. [type]",
    ),
    "init-containers": (
        {"roles[0].entry_template.spec.initContainers": [{}]},
        "is missing. Add 'name'. [required]",
    ),
}


@pytest.mark.parametrize(("changes", "message"), IN_TEMPLATES.values(), ids=IN_TEMPLATES)
def test_what_the_plan_reads_of_a_template_has_its_shape(changes: Args, message: str) -> None:
    (path,) = changes
    text = said(changed(TEMPLATES_PLAIN, changes))
    assert text.startswith(path)
    assert text.endswith(f": {message}")


def test_what_is_not_read_of_a_template_passes_untouched() -> None:
    spec = {"containers": [{"tty": 1, "name": "a", "env": None}], "shareProcessNamespace": "odd"}
    args = changed(TEMPLATES_PLAIN, {"roles[0].entry_template": {"spec": spec, "metadata": None}})
    template = parse_spec(ModelServingSpec, args).roles[0].entry_template
    assert template == {"spec": spec, "metadata": None}
    assert list((template or {})["spec"]["containers"][0]) == ["tty", "name", "env"]


@pytest.mark.parametrize(
    "path",
    [
        "name",
        "replicas",
        "backend",
        "scheduler_name",
        "kthena_version",
        "expose.role",
        "roles",
        "roles[0].name",
        "roles[0].engine.parallelism.tensor",
        BUDGET,
    ],
)
def test_what_decides_the_plan_is_no_output(path: str) -> None:
    assert said(changed(ENGINE_RAY, {path: LATE})) == (
        f"{path}: is an Output, whose value is not known while the plan is built; counts and names "
        "decide how many resources there are. Pass a plain value, from the program or from the "
        "stack's config. [known-when-planned]"
    )


@pytest.mark.parametrize(
    "path", ["queue", "roles[0].engine.image", "roles[0].hugging_face_token.name"]
)
def test_free_text_may_be_an_output(path: str) -> None:
    assert said(changed(ENGINE_RAY, {path: LATE})) == ""


def test_a_queue_may_have_dots_in_its_name() -> None:
    assert parse_spec(QueueSpec, {"name": "team.research"}).name == "team.research"
    with pytest.raises(SpecError) as refusal:
        parse_spec(QueueSpec, {"name": "Team_A"})
    assert str(refusal.value) == (
        "name: is 'Team_A', but must be lower-case letters, digits, dashes and dots, with a "
        "letter or digit at both ends of each part. Write, for example, 'team-a'. [pattern]"
    )


def test_everything_that_is_wrong_is_said_at_once() -> None:
    text = said({"name": "C", "roles": [{"name": 1}], "queues": []})
    assert [line.partition(":")[0] for line in text.splitlines()] == [
        "name",
        "roles[0].name",
        "queues",
    ]


def test_what_is_no_mapping_at_all_is_refused() -> None:
    assert said("chat") == "is 'chat', but must be a map of fields. Write a map of fields. [type]"


@pytest.mark.property
@law
@given(json_trees())
def test_whatever_is_given_is_read_or_refused(args: Any) -> None:
    said(args)
    said({"name": "chat", "roles": [{"name": "a", "entry_template": args, "overlay": args}]})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (False, "false"),
        (1.5, "1.5"),
        ("x" * 80, f"'{'x' * 40}…'"),
        (Launcher.RAY, "'ray'"),
        ([1], "a list"),
        ({}, "a map"),
        (10**5000, "a number of 16610 bits"),
        (object(), "a value of type object"),
    ],
    ids=["null", "false", "fraction", "long", "enum", "list", "mapping", "huge", "other"],
)
def test_a_value_is_shown_short(value: object, shown: str) -> None:
    assert display(value) == shown


@pytest.mark.parametrize(
    ("location", "some"),
    [
        ([], {"name", "roles", "backend"}),
        (["roles", 0], {"engine", "entry_template"}),
        (["roles", 3, "engine", "parallelism"], {"tensor", "pipeline"}),
        (["network_topology", "group_policy"], {"mode", "highest_tier_allowed"}),
    ],
    ids=["top", "role", "parallelism", "optional"],
)
def test_known_fields_are_found_below_lists_and_optionals(
    location: list[str | int], some: set[str]
) -> None:
    assert some <= set(known_fields(ModelServingSpec, location))


@pytest.mark.parametrize("location", [["nothing"], ["name", "more"], ["roles", "x"]])
def test_there_are_no_fields_where_no_model_is(location: list[str | int]) -> None:
    assert known_fields(QueueSpec, location) == []


def test_words_that_begin_with_a_value_are_offered() -> None:
    told = said(changed(ENGINE_RAY, {"roles[0].resources.gpu": "a100"}))
    assert told.endswith("Write a100-40gb or a100-80gb. [known-value]")
