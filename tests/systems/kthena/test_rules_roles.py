from typing import Any

import pytest

from kthena_components.core.values.unknown import Unknown
from tests.systems.kthena.test_rules_examples import (
    GONE,
    chat,
    check_serving,
    pod,
    role,
    said_by,
    serving,
    told,
)

LATE = "\ue0007\ue001"
LATER = "not checked, because the value is known only after the deployment."
ROLE = "spec.template.roles.0"
AT = "spec.template.roles[0]"
NO_GANG = {"spec.template.gangPolicy": GONE}
IMAGE = f"{ROLE}.entryTemplate.spec.containers.0.image"


# kthena-role-count and kthena-role-names-unique


@pytest.mark.parametrize("count", [1, 4])
def test_1_to_4_roles_pass(count: int) -> None:
    assert told(serving(*(role(name) for name in "abcd"[:count]))) == []


def test_5_roles_are_refused() -> None:
    assert told(serving(*(role(name) for name in "abcde"))) == [
        (
            "spec.template.roles: has 5 roles, but Kthena accepts at most 4. Remove 1. "
            "[kthena-role-count]"
        )
    ]


def test_no_roles_are_refused() -> None:
    assert told(serving()) == [
        "spec.template.roles: is empty, so nothing would run. Add a role. [kthena-role-count]"
    ]


def test_late_roles_are_not_checked() -> None:
    expected = f"spec.template.roles: {LATER} [kthena-role-count]"
    assert said_by("role-count", {"spec.template.roles": LATE}) == [expected]


def test_two_roles_of_one_name_are_refused() -> None:
    assert told(serving(role("decode"), role("prefill"), role("decode"))) == [
        (
            "spec.template.roles[2].name: is 'decode', already the name of spec.template.roles[0]. "
            "Rename one of them. [kthena-role-names-unique]"
        )
    ]


def test_a_late_name_is_not_compared() -> None:
    assert said_by("role-names-unique", {f"{ROLE}.name": LATE}) == [
        f"{AT}.name: {LATER} [kthena-role-names-unique]"
    ]


# kthena-image


@pytest.mark.parametrize("image", [" ", "\t", "nginx: 1", " nginx"])
@pytest.mark.parametrize("template", ["entryTemplate", "workerTemplate"])
def test_an_image_is_not_blank_and_has_no_space(image: str, template: str) -> None:
    path = f"{ROLE}.{template}.spec.containers.0.image"
    assert told(chat({path: image})) == [
        (
            f"{AT}.{template}.spec.containers[0].image: is {image!r}, but the name of an image "
            "is not empty and has no spaces. Write registry/name:tag. [kthena-image]"
        )
    ]


@pytest.mark.parametrize("image", ["", None, "nginx", "a\tb"])
def test_other_images_pass(image: str | None) -> None:
    assert told(chat({IMAGE: image})) == []


def test_images_of_init_containers_are_not_looked_at() -> None:
    init = [{"name": "fetch", "image": "a b"}]
    assert told(chat({f"{ROLE}.entryTemplate.spec.initContainers": init})) == []


def test_a_late_image_is_not_checked() -> None:
    at = f"{AT}.entryTemplate.spec.containers[0].image"
    assert told(chat({IMAGE: f"registry/{LATE}:1"})) == [f"{at}: {LATER} [kthena-image]"]


# kthena-replicas


@pytest.mark.parametrize("path", ["spec.replicas", f"{ROLE}.replicas", f"{ROLE}.workerReplicas"])
def test_counts_are_not_negative(path: str) -> None:
    at = path.replace(".0", "[0]")
    assert said_by("replicas", {path: 0, **NO_GANG}) == []
    assert said_by("replicas", {path: -1, **NO_GANG}) == [
        f"{at}: is -1, but must be at least 0. Write 0 or more. [kthena-replicas]"
    ]
    assert said_by("replicas", {path: Unknown("it is computed")}) == [
        f"{at}: not checked, because it is computed. [kthena-replicas]"
    ]


# kthena-gang-minimum

GANG = "spec.template.gangPolicy.minRoleReplicas"


@pytest.mark.parametrize("least", [0, 1, 2, 2.0, None])
def test_a_gang_minimum_up_to_the_roles_replicas_passes(least: float | None) -> None:
    assert told(chat({f"{GANG}.prefill": least})) == []


def test_a_gang_minimum_above_the_roles_replicas_is_refused() -> None:
    assert told(chat({f"{GANG}.prefill": 3})) == [
        (
            f"{GANG}.prefill: is 3, but role 'prefill' has 2 replicas. Write at most 2. "
            "[kthena-gang-minimum]"
        )
    ]


def test_a_negative_gang_minimum_is_refused() -> None:
    assert told(chat({f"{GANG}.prefill": -1})) == [
        f"{GANG}.prefill: is -1, but must be at least 0. Write 0 or more. [kthena-gang-minimum]"
    ]


def test_a_gang_minimum_names_a_role() -> None:
    assert told(chat({f"{GANG}.prefil": 1, f"{GANG}.xyz": 1})) == [
        (
            f"{GANG}.prefil: there is no role 'prefil'. Remove it, because prefill is stated, too. "
            "[kthena-gang-minimum]"
        ),
        f"{GANG}.xyz: there is no role 'xyz'. Known: decode, prefill. [kthena-gang-minimum]",
    ]


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_before_0_3_workers_counted_towards_a_gang_minimum(version: str) -> None:
    assert told(chat({f"{GANG}.prefill": 3}), version) == []
    assert told(chat({f"{GANG}.prefill": 4}), version) == [
        (
            f"{GANG}.prefill: is 4, but role 'prefill' has 3 replicas and workers. Write at most "
            "3. [kthena-gang-minimum]"
        )
    ]


@pytest.mark.parametrize("path", [f"{GANG}.prefill", f"{ROLE}.replicas", f"{ROLE}.name"])
def test_a_gang_minimum_with_a_late_part_is_not_checked(path: str) -> None:
    expected = f"{GANG}.prefill: {LATER} [kthena-gang-minimum]"
    assert said_by("gang-minimum", {path: LATE}) == [expected]


# kthena-worker-template

MISSING = f"{AT}.workerTemplate: is missing, but workerReplicas is 1"
ADD = ". Add workerTemplate, or write workerReplicas: 0. [kthena-worker-template]"


@pytest.mark.parametrize(
    ("version", "consequence"),
    [
        ("0.1", ", and Kthena 0.1 accepts it but starts no worker"),
        ("0.2", ", and Kthena 0.2 accepts it but starts no worker"),
        ("0.3", ", and Kthena 0.3 accepts it but its controller crashes"),
        ("0.4", ""),
        ("1.0", ""),
    ],
)
def test_workers_need_a_template(version: str, consequence: str) -> None:
    (finding,) = check_serving(chat({f"{ROLE}.workerTemplate": GONE}), version)
    assert str(finding) == f"{MISSING}{consequence}{ADD}"
    assert finding.level == ("advisory" if consequence else "mandatory")


@pytest.mark.parametrize("template", [{}, {"spec": {"containers": []}}, pod()])
def test_any_worker_template_will_do(template: dict[str, Any]) -> None:
    assert told(chat({f"{ROLE}.workerTemplate": template})) == []


def test_no_workers_need_no_template() -> None:
    assert told(chat({f"{ROLE}.workerTemplate": GONE, f"{ROLE}.workerReplicas": 0})) == []


def test_a_late_number_of_workers_needs_no_template_yet() -> None:
    changes = {f"{ROLE}.workerTemplate": GONE, f"{ROLE}.workerReplicas": LATE}
    expected = f"{AT}.workerTemplate: {LATER} [kthena-worker-template]"
    assert said_by("worker-template", changes) == [expected]
