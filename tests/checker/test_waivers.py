"""A waiver lets stand what it names, until its day; a wrong one lets nothing stand, and is told."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.catalogue import rule_names
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.waivers import PREFIX, RULE, WaiverEntry, annotated, waive
from kthena_components.core.findings import Finding, Level, Waiver
from kthena_components.core.values.unknown import Unknown
from tests.support.strategies import LATE, json_trees

TODAY = date(2026, 6, 30)
WORLD = "world-size-equals-gpus"
FORM = "Write the last day as YYYY-MM-DD, and after it the reason."
FOUND = Finding(path="spec", seen="starts 16 ranks on 24 GPUs", remedy="write 8", rule=WORLD)
Body = dict[str, Any]


def stated(text: object, rule: str = WORLD) -> WaiverEntry:
    """Give a waiver as it is written on an object."""
    return WaiverEntry(rule=rule, path=f"metadata.annotations.{PREFIX}{rule}", text=text)


def told(text: object, rule: str = WORLD, found: Finding = FOUND) -> list[str]:
    """Give what is said of one finding and one waiver."""
    return [str(finding) for finding in waive([found], [stated(text, rule)], TODAY)]


def test_a_finding_is_waived_with_its_day_and_its_reason() -> None:
    (waived,) = waive([FOUND], [stated("2026-12-31 new nodes come.")], TODAY)
    assert waived.level is Level.WAIVED
    assert waived.waiver == Waiver(until=date(2026, 12, 31), reason="new nodes come")
    assert str(waived) == (
        "spec: starts 16 ranks on 24 GPUs. Write 8. "
        f"Waived until 2026-12-31: new nodes come. [{WORLD}]"
    )


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-06-30 its last day", Level.WAIVED),
        ("2026-06-29 the day before", Level.MANDATORY),
        ("  2026-07-01\n\twith blanks  ", Level.WAIVED),
    ],
)
def test_the_last_day_counts_too(text: str, level: Level) -> None:
    assert waive([FOUND], [stated(text)], TODAY)[0].level is level


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", f"gives neither a day nor a reason. {FORM}"),
        (None, f"gives neither a day nor a reason. {FORM}"),
        ("  ", f"gives neither a day nor a reason. {FORM}"),
        ("new nodes come", f"begins with 'new', which is not a day. {FORM}"),
        ("2026-02-30 nodes", f"begins with '2026-02-30', which is not a day. {FORM}"),
        ("20261231 nodes", f"begins with '20261231', which is not a day. {FORM}"),
        ("31.12.2026 nodes", f"begins with '31.12.2026', which is not a day. {FORM}"),
        ("2026-12-31", "gives no reason after 2026-12-31. Write after it why the finding is "),
        ("2026-12-31 .", "gives no reason after 2026-12-31. Write after it why the finding is "),
        (date(2026, 12, 31), "gives no reason after 2026-12-31. "),
        (
            "2026-06-29 nodes",
            f"ended on 2026-06-29, and today is 2026-06-30. Fix what '{WORLD}' reports, or write",
        ),
        (["2026-12-31", "nodes"], f"is not a string. {FORM}"),
        (7, f"is not a string. {FORM}"),
        pytest.param(10**5000, f"is not a string. {FORM}", id="huge"),
    ],
)
def test_a_waiver_with_a_mistake_waives_nothing(text: object, said: str) -> None:
    finding, refused = told(text)
    assert finding == str(FOUND)
    assert refused.startswith(f"metadata.annotations.{PREFIX}{WORLD}: {said}")
    assert refused.endswith(f"[{RULE}]")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("world-size-equal-gpu", f"there is no rule 'world-size-equal-gpu'. Write '{WORLD}'. "),
        ("", "there is no rule ''. Choose one that 'kthena-components check --rules' lists. "),
        (RULE, "cannot be waived, because it is about waivers. Remove it. "),
    ],
)
def test_a_waiver_of_no_rule_is_refused(rule: str, said: str) -> None:
    finding, refused = told("2026-12-31 nodes", rule)
    assert finding == str(FOUND)
    assert f": {said}" in refused


def test_what_is_wrong_with_a_waiver_is_mandatory_and_cannot_be_waived() -> None:
    both = [stated("never", WORLD), stated("2026-12-31 we know", RULE)]
    found = waive([FOUND], both, TODAY)
    assert [(f.rule, f.level) for f in found] == [
        (WORLD, Level.MANDATORY),
        (RULE, Level.MANDATORY),
        (RULE, Level.MANDATORY),
    ]


def test_a_waiver_of_a_rule_that_found_nothing_is_advice() -> None:
    _, unused = waive([FOUND], [stated("2026-12-31 nodes", "shm-present")], TODAY)
    assert unused.level is Level.ADVISORY
    assert unused.seen == "has nothing to waive: 'shm-present' reports nothing here"


def test_what_may_be_found_elsewhere_is_not_said_to_find_nothing() -> None:
    waiver = stated("2026-12-31 nodes", "gang-has-pods")
    assert waive([], [waiver], TODAY, elsewhere={"gang-has-pods"}) == []


@pytest.mark.parametrize("text", [LATE, f"2026-12-31 {LATE}", Unknown("it is late")])
def test_a_waiver_that_is_not_known_waives_nothing_yet(text: object) -> None:
    finding, unknown = waive([FOUND], [stated(text)], TODAY)
    assert (finding, unknown.rule, unknown.level) == (FOUND, RULE, Level.UNKNOWN)


def test_what_could_not_be_judged_stays_so() -> None:
    unknown = Finding(path="", seen="was not checked", rule=WORLD, level=Level.UNKNOWN)
    assert waive([unknown], [stated("2026-12-31 nodes")], TODAY) == [unknown]


@pytest.mark.parametrize("level", [Level.MANDATORY, Level.ADVISORY])
def test_all_findings_of_a_rule_are_waived_and_no_others(level: Level) -> None:
    findings = [
        Finding(path="a", seen="x", rule=WORLD, level=level),
        Finding(path="b", seen="x", rule=WORLD, level=level),
        Finding(path="c", seen="x", rule="nodes-whole", level=level),
    ]
    waived = waive(findings, [stated("2026-12-31 nodes")], TODAY)
    assert [finding.level for finding in waived] == [Level.WAIVED, Level.WAIVED, level]


def pod(annotations: object) -> Body:
    """Give a Pod with TP 4 on 8 GPUs."""
    container = {
        "name": "engine",
        "command": ["vllm", "serve", "m", "-tp", "4"],
        "image": "vllm/vllm-openai:v0.26.0",
        "resources": {"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 8}},
    }
    metadata = {"name": "p", "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }


def test_a_manifest_is_waived_by_its_annotations() -> None:
    body = pod({f"{PREFIX}{WORLD}": "2026-12-31 nodes", "other/key": "2026-12-31 x"})
    levels = {f.rule: f.level for f in check_manifest(body, "items[0]", today=TODAY)}
    assert (levels[WORLD], levels["shm-present"]) == (Level.WAIVED, Level.ADVISORY)
    assert RULE not in levels
    raw = {f.rule: f.level for f in check_manifest(body)}
    assert raw[WORLD] is Level.MANDATORY, "without a day no waiver is heeded"
    assert annotated(body, "items[0]")[0].path.startswith("items[0].metadata.annotations.waive.")


def test_the_annotations_of_a_pod_template_waive_nothing() -> None:
    template = pod({f"{PREFIX}{WORLD}": "2026-12-31 nodes"})
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": template},
    }
    assert WORLD in {
        f.rule for f in check_manifest(body, today=TODAY) if f.level is Level.MANDATORY
    }


TEXTS = json_trees() | st.dates().map(str) | st.dates().map(lambda day: f"{day} because")
KEYS = st.sampled_from([WORLD, "shm-present", RULE, "", "gang-has-pods", LATE]) | st.text()


@pytest.mark.property
@given(
    st.dictionaries(KEYS.map(lambda rule: f"{PREFIX}{rule}") | st.text() | st.integers(), TEXTS)
    | json_trees(),
    st.dates(),
)
def test_any_annotations_are_read_and_waive_or_are_told(annotations: Any, today: date) -> None:
    body = pod(annotations)
    plain, found = check_manifest(body), check_manifest(body, today=today)
    assert [f.rule for f in found[: len(plain)]] == [f.rule for f in plain]
    assert all(str(finding) for finding in found)
    assert {f.rule for f in found[len(plain) :]} <= {RULE}
    for before, after in zip(plain, found, strict=False):
        assert after.level in {before.level, Level.WAIVED}


def test_every_rule_can_be_the_name_of_an_annotation() -> None:
    assert all(len(name) <= 63 and name.replace("-", "").isalnum() for name in rule_names())
