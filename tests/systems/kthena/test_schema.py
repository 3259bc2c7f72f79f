from typing import Any

import pytest

from kthena_components.core.findings import Level
from tests.systems.kthena.test_rules_examples import GONE, TIER_1, chat, check_serving, told

LATE = "\ue0007\ue001"
LATER = "not checked, because the value is known only after the deployment."
ROLE = "spec.template.roles.0"
AT = "spec.template.roles[0]"
POD, POD_AT = f"{ROLE}.entryTemplate.spec", f"{AT}.entryTemplate.spec"
ENGINE, ENGINE_AT = f"{POD}.containers.0", f"{POD_AT}.containers[0]"
TOPOLOGY = "spec.template.networkTopology"
NO_FIELD = (
    "is not a field of ModelServing in Kthena 1.0, which server-side apply and kubectl reject"
)
WHOLE = "but must be a whole number. Write, for example, 1, without quotes."
TEXT = "but must be a string. Write it in quotes."
MAP = "but must be a map. Write a map."
LIST = "but must be a list. Write a list."


# Kinds


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("metadata", [], f"metadata: is a list, {MAP}"),
        ("metadata.name", {}, "metadata.name: is a map, but must be a string. Write a string."),
        ("metadata.labels", {"app": 8}, f"metadata.labels.app: is 8, {TEXT}"),
        ("spec", "chat", f"spec: is 'chat', {MAP}"),
        ("spec.replicas", "2", f"spec.replicas: is '2', {WHOLE.replace(', for example, 1', ' 2')}"),
        ("spec.replicas", 1.5, f"spec.replicas: is 1.5, {WHOLE}"),
        ("spec.replicas", True, f"spec.replicas: is true, {WHOLE}"),
        ("spec.replicas", float("nan"), f"spec.replicas: is nan, {WHOLE}"),
        ("spec.replicas", b"2", f"spec.replicas: is a value of type bytes, {WHOLE}"),
        ("spec.replicas", 1e300, f"spec.replicas: is 1e+300, {WHOLE}"),
        ("spec.schedulerName", 1, f"spec.schedulerName: is 1, {TEXT}"),
        ("spec.template.roles", {}, f"spec.template.roles: is a map, {LIST}"),
        (ROLE, None, f"{AT}: is null, {MAP}"),
        (f"{ROLE}.workerReplicas", [], f"{AT}.workerReplicas: is a list, {WHOLE}"),
        (f"{POD}.containers", {}, f"{POD_AT}.containers: is a map, {LIST}"),
        (f"{POD}.nodeSelector", {"gpus": 8}, f"{POD_AT}.nodeSelector.gpus: is 8, {TEXT}"),
        (f"{ENGINE}.args", ["-tp", 8], f"{ENGINE_AT}.args[1]: is 8, {TEXT}"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(path: str, value: Any, said: str) -> None:
    found = [text for text in told(chat({path: value})) if "[kthena-schema]" in text]
    assert found == [f"{said} [kthena-schema]"]


def test_a_budget_is_a_whole_number_or_a_text() -> None:
    path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
    for value, shown in ((1.5, "1.5"), (False, "false"), ([], "a list")):
        assert told(chat({path: value})) == [
            (
                f"{path}: is {shown}, but must be a whole number or a percentage. "
                "Write, for example, 1 or 25%. [kthena-schema]"
            )
        ]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_a_whole_number_fits_into_32_bits(number: int) -> None:
    assert told(chat({"spec.replicas": number})) == [
        (
            f"spec.replicas: is {number}, but must be from -2147483648 to 2147483647. "
            "Write a number in that range. [kthena-schema]"
        )
    ]


def test_a_number_too_large_to_print_is_described() -> None:
    (text,) = told(chat({"spec.replicas": 10**5000}))
    assert text.startswith("spec.replicas: is a number of 16610 bits, but must be from")


@pytest.mark.parametrize("seconds", [0, -1, 2**40, 60.0])
def test_a_grace_period_may_have_64_bits(seconds: float) -> None:
    assert told(chat({"spec.template.restartGracePeriodSeconds": seconds})) == []


@pytest.mark.parametrize("amount", [8, 8.0, "16", "500m", "1124Gi", ".5", "1e3", "+1", "1" * 99])
def test_a_quantity_passes(amount: Any) -> None:
    assert told(chat({f"{ENGINE}.resources": {"limits": {"cpu": amount}}})) == []


@pytest.mark.parametrize("amount", ["8 GB", "", "1,5", "8\n", "1" * 9999 + "x"])
def test_what_is_not_a_quantity_is_refused(amount: str) -> None:
    shown = repr(amount) if len(amount) < 9 else f"'{'1' * 40}…'"
    assert told(chat({f"{ENGINE}.resources": {"requests": {"cpu": amount}}})) == [
        (
            f"{ENGINE_AT}.resources.requests.cpu: is {shown}, which is not a quantity. "
            "Write, for example, 8, 500m or 1124Gi. [kthena-schema]"
        )
    ]


def test_a_fraction_is_no_quantity_unless_it_is_quoted() -> None:
    assert told(chat({f"{ENGINE}.resources": {"limits": {"cpu": 0.5}}})) == [
        (
            f"{ENGINE_AT}.resources.limits.cpu: is 0.5, but must be a whole number or a string. "
            "Write it in quotes. [kthena-schema]"
        )
    ]


# Words and ranges


def test_a_word_is_one_of_a_few() -> None:
    assert told(chat({"spec.recoveryPolicy": "Recreate"})) == [
        (
            "spec.recoveryPolicy: is 'Recreate', but must be 'ServingGroupRecreate' or "
            "'RoleRecreate' or 'None'. Write 'RoleRecreate'. [kthena-schema]"
        )
    ]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("mode", "firm", "is 'firm', but must be 'hard' or 'soft'. Known: hard, soft."),
        ("highestTierAllowed", -1, "is -1, but must be at least 0. Write 0 or more."),
        ("highestTierName", "a" * 254, "has 254 characters, but may have 253. Shorten it by 1."),
    ],
)
@pytest.mark.parametrize("policy", ["groupPolicy", "rolePolicy"])
def test_a_topology_has_a_mode_and_a_tier(policy: str, field: str, value: Any, said: str) -> None:
    assert told(chat({f"{TOPOLOGY}.{policy}.{field}": value})) == [
        f"{TOPOLOGY}.{policy}.{field}: {said} [kthena-schema]"
    ]


@pytest.mark.parametrize(
    "policy", [{}, TIER_1, {"mode": "soft"}, {"highestTierName": "a" * 253, "mode": "hard"}]
)
def test_a_topology_within_its_bounds_passes(policy: dict[str, Any]) -> None:
    assert told(chat({f"{TOPOLOGY}.groupPolicy": policy})) == []


def test_before_0_3_a_tier_had_no_bounds() -> None:
    changes = {f"{TOPOLOGY}.rolePolicy": {"highestTierAllowed": -1, "highestTierName": "a" * 254}}
    assert told(chat(changes), "0.2") == []


# Required fields


@pytest.mark.parametrize(
    "path",
    [
        "spec",
        "spec.template",
        "spec.template.roles",
        f"{ROLE}.name",
        f"{ROLE}.entryTemplate",
        f"{ROLE}.workerReplicas",
        f"{POD}.containers",
        f"{ENGINE}.name",
    ],
)
@pytest.mark.parametrize("absent", [GONE, None])
def test_a_required_field_is_not_missing(path: str, absent: Any) -> None:
    at = path.replace(".0", "[0]")
    assert told(chat({path: absent})) == [
        f"{at}: is missing, and it has no default. Add {path.rpartition('.')[2]}. [kthena-schema]"
    ]


def test_a_template_needs_no_pod_and_a_pod_no_container() -> None:
    changes: dict[str, Any] = {
        f"{ROLE}.entryTemplate": {},
        f"{ROLE}.workerTemplate.spec": {"containers": []},
    }
    assert told(chat(changes)) == []


# Lists with keys


@pytest.mark.parametrize(
    ("path", "item", "said"),
    [
        ("containers", {"name": "x"}, "name 'x'"),
        ("initContainers", {"name": "x"}, "name 'x'"),
        ("volumes", {"name": "x"}, "name 'x'"),
        ("imagePullSecrets", {}, "name ''"),
        ("containers.0.env", {"name": "x", "value": "1"}, "name 'x'"),
        ("containers.0.ports", {"containerPort": 80}, "containerPort 80 and protocol 'TCP'"),
        ("containers.0.volumeMounts", {"mountPath": "/x", "name": "y"}, "mountPath '/x'"),
        (
            "topologySpreadConstraints",
            {"topologyKey": "x", "whenUnsatisfiable": "y", "maxSkew": 1},
            "topologyKey 'x' and whenUnsatisfiable 'y'",
        ),
    ],
)
def test_doubles_in_a_list_with_keys_are_refused(path: str, item: Any, said: str) -> None:
    at, last = f"{POD_AT}.{path.replace('.0', '[0]')}", path.rpartition(".")[2]
    assert told(chat({f"{POD}.{path}": [item, item]})) == [
        (
            f"{at}[1]: has {said}, like {last}[0], and the API server rejects duplicates here. "
            "Rename it or remove it. [kthena-schema]"
        )
    ]


def test_one_port_with_two_protocols_is_no_double() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    assert told(chat({f"{ENGINE}.ports": ports})) == []


def test_a_port_as_a_float_is_a_double_of_the_same_number() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80.0, "protocol": "TCP"}]
    assert len(told(chat({f"{ENGINE}.ports": ports}))) == 1


# Fields that there are not


def test_an_unknown_field_is_refused_and_the_nearest_is_named() -> None:
    (finding,) = check_serving(chat({"spec.recoverPolicy": "None"}))
    assert str(finding) == (
        f"spec.recoverPolicy: {NO_FIELD}. Write 'recoveryPolicy'. [kthena-schema]"
    )
    assert finding.level is Level.MANDATORY


def test_an_unknown_field_without_a_near_one_is_told_which_there_are() -> None:
    assert told(chat({"spec.rolls": 1})) == [
        (
            f"spec.rolls: {NO_FIELD}. Known: plugins, recoveryPolicy, replicas, rolloutStrategy, "
            "schedulerName, template. [kthena-schema]"
        )
    ]


@pytest.mark.parametrize(
    "path",
    [
        "spec.template.gangPolicy.x",
        f"{ROLE}.x",
        f"{ROLE}.entryTemplate.metadata.x",
        "spec.rolloutStrategy.x",
        f"{TOPOLOGY}.groupPolicy.x",
    ],
)
def test_unknown_fields_are_found_in_all_that_is_kthenas_own(path: str) -> None:
    (text,) = told(chat({path: 1}))
    assert text.startswith(f"{path.replace('.0', '[0]')}: {NO_FIELD}. Known: ")


@pytest.mark.parametrize("path", ["metadata.x", f"{POD}.x", f"{ENGINE}.x"])
def test_unknown_fields_of_pods_and_metadata_are_found_and_not_all_others_listed(path: str) -> None:
    (text,) = told(chat({path: 1}))
    assert text == f"{path.replace('.0', '[0]')}: {NO_FIELD}. Remove it. [kthena-schema]"


@pytest.mark.parametrize("path", ["status", "metadata.uid", "metadata.managedFields"])
def test_what_the_server_writes_is_not_checked(path: str) -> None:
    assert told(chat({path: 1})) == []


def test_a_plugin_has_a_name_and_any_configuration() -> None:
    plugin = {"name": "a", "type": "BuiltIn", "config": {"x": [1]}, "scope": {"roles": ["a"]}}
    assert told(chat({"spec.plugins": [plugin]})) == []
    assert told(chat({"spec.plugins": [{"type": "External"}]})) == [
        "spec.plugins[0].name: is missing, and it has no default. Add name. [kthena-schema]",
        (
            "spec.plugins[0].type: is 'External', but must be 'BuiltIn'. Known: BuiltIn. "
            "[kthena-schema]"
        ),
    ]
