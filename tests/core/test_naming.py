"""Names are identity: these are fixed, and a change here moves resources."""

import pytest

from kthena_components.core import naming


def test_names_are_kthenas() -> None:
    where = ("chat", 1, "decode", 2)
    assert naming.group_name("chat", 1) == "chat-1"
    assert naming.role_id("decode", 2) == "decode-2"
    assert naming.instance_name(*where) == "chat-1-decode-2"
    assert naming.entry_name(*where) == "chat-1-decode-2-0"
    assert naming.worker_set_name(*where) == "chat-1-decode-2-w"
    assert naming.entry_address(*where, "serving") == "chat-1-decode-2-0.serving"


def test_labels_are_kthenas() -> None:
    assert naming.instance_labels("chat", 1, "decode", 2) == {
        "modelserving.volcano.sh/name": "chat",
        "modelserving.volcano.sh/group-name": "chat-1",
        "modelserving.volcano.sh/role": "decode",
        "modelserving.volcano.sh/role-id": "decode-2",
    }


@pytest.mark.parametrize(
    ("component", "name", "resource"),
    [
        ("chat", "chat-0-decode-0", "chat-0-decode-0"),
        ("mine", "chat-0-decode-0", "mine-0-decode-0"),
        ("mine", "chat", "mine"),
    ],
)
def test_a_resource_is_named_after_its_component(component: str, name: str, resource: str) -> None:
    assert naming.resource_name(component, "chat", name) == resource


@pytest.mark.parametrize(
    ("label", "service", "any_label"),
    [
        ("chat-1", True, True),
        ("405b", False, True),
        ("-a", False, False),
        ("a-", False, False),
        ("A", False, False),
        ("", False, False),
        ("a.b", False, False),
    ],
)
def test_a_service_name_starts_with_a_letter(label: str, service: bool, any_label: bool) -> None:
    assert bool(naming.DNS_1035.fullmatch(label)) is service
    assert bool(naming.DNS_1123_LABEL.fullmatch(label)) is any_label


@pytest.mark.parametrize(
    ("word", "known", "is_slip"),
    [
        ("models-pcv", "models-pvc", True),
        ("models_cache", "models-cache", True),
        ("chat-data", "chat-date", True),
        ("chat-dat", "chat-data", False),  # a part of three letters
        ("models-pvb", "models-pvc", False),
        ("chat.eu", "chat.us", False),
        ("chat.a", "chat.b", False),
        ("team-ab", "team-ba", False),
        ("models-abcd", "models-dbca", False),  # two letters, but not side by side
        ("models-wxyz", "models-wabz", False),
        ("models-10", "models-01", False),
        ("models-pvc", "models-pvc", False),
    ],
)
def test_a_slip_is_one_letter_or_two_swapped(word: str, known: str, is_slip: bool) -> None:
    assert naming.name_slip_of(word, [known]) == (known if is_slip else None)


def test_a_slip_is_looked_for_among_a_thousand_names() -> None:
    others = [f"other-{number}" for number in range(999)]
    assert naming.name_slip_of("models-pcv", [*others, "models-pvc"]) == "models-pvc"
    assert naming.name_slip_of("models-pcv", [*others, "other", "models-pvc"]) is None
