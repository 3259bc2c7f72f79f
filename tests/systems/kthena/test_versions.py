from typing import Any

import pytest

from kthena_components.core.findings import Level
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from tests.systems.kthena.test_rules_examples import GONE, TIER_1, chat, check_serving, told

LATER = "not checked, because the value is known only after the deployment."
ROLE = "spec.template.roles.0"
AT = "spec.template.roles[0]"
POD, POD_AT = f"{ROLE}.entryTemplate.spec", f"{AT}.entryTemplate.spec"
TOPOLOGY = "spec.template.networkTopology"
NO_FIELD = "is not a field of ModelServing in Kthena"
REFUSED = "which server-side apply and kubectl reject"


# Fields that came and went


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("spec.plugins", [{"name": "lws-standard-labels"}], "0.2", "0.3"),
        (f"{TOPOLOGY}.groupPolicy", TIER_1, "0.1", "0.2"),
        (f"{ROLE}.maxUnavailable", 1, "0.4", "1.0"),
    ],
)
def test_a_newer_field_is_refused_by_an_older_version(
    path: str, value: Any, old: str, new: str
) -> None:
    (finding,) = check_serving(chat({path: value}), old)
    assert finding.seen == f"{NO_FIELD} {old}, {REFUSED}; {new} has it"
    assert finding.remedy.endswith(f", or use Kthena {new}")
    assert (finding.rule, finding.level) == ("kthena-version", Level.MANDATORY)


def test_the_flat_topology_of_0_1_is_refused_since_0_2() -> None:
    assert told(chat({TOPOLOGY: TIER_1}), "0.1") == []
    for version in KTHENA_VERSIONS[1:]:
        moved = f"Move it to {TOPOLOGY}.groupPolicy or {TOPOLOGY}.rolePolicy"
        known = f"{REFUSED}; 0.1 has it. {moved}. [kthena-version]"
        assert told(chat({TOPOLOGY: TIER_1}), version) == [
            f"{TOPOLOGY}.mode: {NO_FIELD} {version}, {known}",
            f"{TOPOLOGY}.highestTierAllowed: {NO_FIELD} {version}, {known}",
        ]


def test_spread_constraints_were_a_field_of_0_1_alone() -> None:
    changes = {"spec.topologySpreadConstraints": [{"maxSkew": 1}]}
    assert told(chat(changes), "0.1") == []
    assert told(chat(changes)) == [
        (
            f"spec.topologySpreadConstraints: {NO_FIELD} 1.0, {REFUSED}; 0.1 has it. Remove it. "
            "[kthena-version]"
        )
    ]


@pytest.mark.parametrize("version", KTHENA_VERSIONS)
def test_since_0_3_host_aliases_may_have_doubles(version: str) -> None:
    aliases = [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]
    found = told(chat({f"{POD}.hostAliases": aliases}), version)
    refused = (
        f"{POD_AT}.hostAliases[1]: has ip '10.0.0.1', like hostAliases[0], and the API server "
        f"rejects duplicates here in Kthena {version}; 0.3 accepts it. Rename it or remove it, or "
        "use Kthena 0.3. [kthena-version]"
    )
    assert found == ([refused] if version in {"0.1", "0.2"} else [])


# The version that is to read it


def test_a_late_key_is_not_compared_in_any_version() -> None:
    aliases = [{"ip": "\ue0007\ue001"}, {"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]
    (late, double) = told(chat({f"{POD}.hostAliases": aliases}), "0.2")
    assert late == f"{POD_AT}.hostAliases[0]: {LATER} [kthena-schema]"
    assert double.endswith("[kthena-version]")


@pytest.mark.parametrize("version", ["v1.0.3", "1.0.0-rc.0", "0.4.0"])
def test_a_version_may_be_written_in_full(version: str) -> None:
    assert told(chat(), version) == []


@pytest.mark.parametrize("version", ["2.0", "main", ""])
def test_a_version_that_is_not_known_is_checked_as_the_newest(version: str) -> None:
    (finding,) = check_serving(chat({ROLE + ".maxUnavailable": None}), version)
    assert str(finding) == (
        f"Kthena '{version}' is not known here, so it was checked as 1.0. "
        "Known: 0.1, 0.2, 0.3, 0.4, 1.0. [kthena-version]"
    )
    assert finding.level is Level.ADVISORY


@pytest.mark.parametrize(
    ("scheduler", "said"), [("default", "is 'default'"), ("", "is ''"), (None, "is missing")]
)
def test_0_1_takes_the_scheduler_volcano_alone(scheduler: Any, said: str) -> None:
    changes = {"spec.schedulerName": scheduler}
    assert told(chat(changes), "0.2") == []
    assert told(chat(changes), "0.1") == [
        (
            f"spec.schedulerName: {said}, but Kthena 0.1 only accepts the scheduler volcano. "
            "Write volcano, or use Kthena 0.2. [kthena-version]"
        )
    ]


def test_a_late_scheduler_is_not_checked_for_0_1() -> None:
    expected = f"spec.schedulerName: {LATER} [kthena-version]"
    assert told(chat({"spec.schedulerName": "\ue0007\ue001"}), "0.1") == [expected]


def test_0_1_crashes_on_a_topology_without_a_gang() -> None:
    (finding,) = check_serving(chat({TOPOLOGY: {}, "spec.template.gangPolicy": GONE}), "0.1")
    assert str(finding) == (
        f"{TOPOLOGY}: is given without gangPolicy, and the controller of Kthena 0.1 crashes on "
        "it. Add gangPolicy, or use Kthena 0.2. [kthena-version]"
    )
    assert finding.level is Level.ADVISORY


@pytest.mark.parametrize("version", KTHENA_VERSIONS)
def test_before_0_4_the_controller_crashes_on_annotations(version: str) -> None:
    found = told(chat({f"{ROLE}.workerTemplate.metadata.annotations": {"a": "b"}}), version)
    crash = (
        f"{AT}.workerTemplate.metadata.annotations: is given, and the controller of Kthena "
        f"{version} crashes on it. Remove it, or use Kthena 0.4. [kthena-version]"
    )
    assert found == ([crash] if version in {"0.1", "0.2", "0.3"} else [])
