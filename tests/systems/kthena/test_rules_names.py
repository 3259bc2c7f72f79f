from typing import Any

import pytest

from tests.systems.kthena.test_rules_examples import GONE, chat, role, said_by, serving, told

LATE = "\ue0007\ue001"
LATER = "not checked, because the value is known only after the deployment."
DNS = (
    "a DNS-1035 label: lower-case letters, digits and dashes, a letter first, no dash last. "
    "Write, for example,"
)
ROLE = "spec.template.roles.0"
AT = "spec.template.roles[0]"
NO_GANG = {"spec.template.gangPolicy": GONE}


# kthena-generated-name


@pytest.mark.parametrize(("longest", "over"), [(49, 0), (50, 1), (60, 11)])
def test_a_generated_name_has_63_characters_at_most(longest: int, over: int) -> None:
    name = "a" * longest
    expected = (
        f"metadata.name: with role 'prefill' the generated name is '{name}-2-prefill-2-1', "
        f"{63 + over} characters, and Kubernetes allows 63. "
        f"Shorten metadata.name or the role's name by {over}. [kthena-generated-name]"
    )
    found = [text for text in told(chat({"metadata.name": name})) if "'prefill'" in text]
    assert found == ([expected] if over else [])


def test_counts_in_a_generated_name_are_the_specs_own() -> None:
    manifest = serving(role("prefill", 10, 100), name="a" * 47, replicas=1000)
    (text,) = told(manifest)
    assert f"'{'a' * 47}-1000-prefill-10-100', 67 characters" in text


def test_a_count_that_is_not_given_is_1_in_a_generated_name() -> None:
    bare = role("prefill") | {"replicas": None}
    (text,) = told(serving(bare, name="a" * 60, replicas=None))
    assert f"'{'a' * 60}-1-prefill-1-0'" in text


@pytest.mark.parametrize(
    ("name", "better"), [("Chat.1", "chat-1"), ("1chat", "r1chat"), ("chat-", "chat")]
)
def test_a_name_that_no_label_can_begin_with_is_refused_once(name: str, better: str) -> None:
    assert told(chat({"metadata.name": name})) == [
        (
            f"metadata.name: is '{name}', and every name that Kthena generates starts with it, "
            f"but it is not {DNS} '{better}'. [kthena-generated-name]"
        )
    ]


def test_a_name_of_253_characters_or_more_is_counted_in_full() -> None:
    found = told(serving(role("prefill"), name="a" * 1000))
    assert len(found) == 1
    assert "1014 characters, and Kubernetes allows 63" in found[0]
    assert len(found[0]) < 500


@pytest.mark.parametrize("name", [GONE, "", None])
def test_a_missing_name_is_refused(name: Any) -> None:
    assert told(chat({"metadata.name": name})) == [
        (
            "metadata.name: is missing, and every name that Kthena generates starts with it. "
            "Add metadata.name. [kthena-generated-name]"
        )
    ]


def test_a_name_to_be_generated_is_checked_with_its_suffix() -> None:
    assert told(chat({"metadata.name": GONE, "metadata.generateName": "chat-"})) == []
    (text, _) = told(chat({"metadata.name": GONE, "metadata.generateName": "a" * 100}))
    assert f"'{'a' * 58}xxxxx-2-prefill-2-1', 77 characters" in text


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_before_0_3_a_capital_in_a_role_was_refused_in_the_generated_name(version: str) -> None:
    assert told(chat({f"{ROLE}.name": "Prefill", **NO_GANG}), version) == [
        (
            "metadata.name: with role 'Prefill' the generated name is 'chat-2-Prefill-2-1', "
            "which is not a DNS-1035 label: lower-case letters, digits and dashes, a letter first, "
            "no dash last. Name the role for example 'prefill'. [kthena-generated-name]"
        )
    ]


@pytest.mark.parametrize(
    "path", ["metadata.name", "spec.replicas", f"{ROLE}.name", f"{ROLE}.workerReplicas"]
)
def test_a_generated_name_with_a_late_part_is_not_checked_once(path: str) -> None:
    assert said_by("generated-name", {path: LATE}) == [
        f"metadata.name: {LATER} [kthena-generated-name]"
    ]


# kthena-role-name


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("405b", "r405b"),
        ("Prefill", "prefill"),
        ("pre_fill", "pre-fill"),
        ("prefill-", "prefill"),
        ("", "r"),
    ],
)
def test_a_roles_name_is_a_dns_1035_label(name: str, better: str) -> None:
    assert told(chat({f"{ROLE}.name": name, **NO_GANG})) == [
        f"{AT}.name: is '{name}', which is not {DNS} '{better}'. [kthena-role-name]"
    ]


def test_a_roles_name_has_12_characters_at_most() -> None:
    assert told(chat({f"{ROLE}.name": "p" * 12, **NO_GANG})) == []
    assert told(chat({f"{ROLE}.name": "p" * 13, **NO_GANG})) == [
        (
            f"{AT}.name: is 'ppppppppppppp', 13 characters, but may have 12. Shorten it by 1. "
            "[kthena-role-name]"
        )
    ]


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_before_0_3_a_roles_name_could_begin_with_a_digit_but_had_no_underscore(
    version: str,
) -> None:
    assert said_by("role-name", {f"{ROLE}.name": "405b", **NO_GANG}, version) == []
    assert said_by("role-name", {f"{ROLE}.name": "pre_fill", **NO_GANG}, version) == [
        (
            f"{AT}.name: is 'pre_fill', which is not made of letters, digits and dashes, "
            "with no dash first or last. Write, for example, 'pre-fill'. [kthena-role-name]"
        )
    ]


def test_a_late_roles_name_is_not_checked() -> None:
    assert said_by("role-name", {f"{ROLE}.name": LATE}) == [
        f"{AT}.name: {LATER} [kthena-role-name]"
    ]
