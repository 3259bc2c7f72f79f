"""`kthena-components review`: what an update does to what runs, and what is never shown."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.levels import Levels
from kthena_components.cli.review.command import check_updates
from kthena_components.cli.review.comment import MARK, MOST_CHARACTERS, write_comment
from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import reviewed
from kthena_components.core import naming
from tests.cli.conftest import Review
from tests.cli.previews import (
    SERVING,
    SET,
    STACK,
    TOKEN,
    WORKERS,
    cells,
    document,
    events,
    message,
    row,
    serving,
    step,
    urn,
)
from tests.support.peers import LATE, LWS_VLLM, changed, gpus, template
from tests.support.strategies import json_trees

LWS = urn("kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "vllm")
IMAGE = "spec.template.spec.containers[0].image"


def test_what_is_replaced_is_told_by_fields(review: Review) -> None:
    hashed = 'spec.template.metadata.labels["modelserving.volcano.sh/revision"]'
    diff = {"spec.replicas": "update", IMAGE: "update-replace", hashed: "update-replace"}
    told = [
        step("delete-replaced", SET, {"spec": {}}, None),
        step("replace", SET, {"spec": {}}, {"spec": {}}, diff),
        step("replace", WORKERS, {"spec": {}}, {"spec": {}}, diff),
    ]
    ran = review(prod=events(*told))
    (line,) = (line for line in ran.lines if "Replaced" in line)
    assert line == (
        "- **Replaced** StatefulSets serving/llama-0-serve-0, serving/llama-0-serve-0-w: old pods "
        f"stop before new ones start, so there is downtime (`{IMAGE}`)"
    )


def test_a_replacement_that_is_made_first_has_no_downtime(review: Review) -> None:
    """Pulumi makes an object with a generated name before it deletes the old one."""
    auto = urn("kubernetes:apps/v1:Deployment", "auto")
    old, new = ({"metadata": {"name": name}, **_running("vllm/a:1")} for name in ("a-1", "a-2"))
    order = ["create-replacement", "replace", "delete-replaced"]
    for ops, words in ((order, "new pods start before old ones stop"), (order[::-1], "downtime")):
        ran = review(prod=events(*(step(op, auto, old, new) for op in ops)))
        (line,) = (line for line in ran.lines if "Replaced" in line)
        assert words in line


def _running(image: object, **more: Any) -> dict[str, Any]:
    containers = [{"name": "engine", "image": image, **more}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def test_another_tag_is_shown_before_and_after(review: Review) -> None:
    old, new = _running("vllm/vllm-openai:v0.33.0"), _running("vllm/vllm-openai:v0.34.0")
    ran = review(prod=events(step("replace", SET, old, new), step("replace", WORKERS, old, new)))
    (line,) = (line for line in ran.lines if "Replaced" in line)
    assert line.endswith(f"(`{IMAGE}`): image v0.33.0 → v0.34.0")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a/b:1", "a/c:2"),  # another repository, whose name is not shown
        ("a/b:1", {"4dabf18193072939515e22adb298388d": "secret"}),
        ("a/b:1", f"a/b:{TOKEN}"),
        ("a/b:1", "a/b@sha256:0123"),
        ("a/b:1", "a/b:@team"),
        ("a/b:1", "a/b:1"),
    ],
)
def test_nothing_else_of_an_image_is_shown(review: Review, old: object, new: object) -> None:
    step_ = step("update", SET, _running(old), _running(new, args=["x"]))
    ran = review(prod=events(step_))
    assert not [line for line in ran.lines if ": image " in line]
    assert "team" not in ran.out
    assert TOKEN not in ran.out


def test_a_serving_of_several_groups_is_not_down(review: Review) -> None:
    def of(group: str) -> dict[str, Any]:
        labels = {naming.NAME: "llama", naming.GROUP_NAME: group}
        return {"metadata": {"labels": labels}, "spec": {}}

    other = SET.replace("llama-0", "llama-1")
    told = [
        step("replace", SET, of("llama-0"), of("llama-0"), {IMAGE: "update-replace"}),
        step("replace", other, of("llama-1"), of("llama-1"), {IMAGE: "update-replace"}),
    ]
    (line,) = (line for line in review(prod=events(*told)).lines if "Replaced" in line)
    assert "old pods stop before new ones start, group after group (" in line


def test_a_service_of_the_serving_is_no_group(review: Review) -> None:
    def of(**labels: str) -> dict[str, Any]:
        return {"metadata": {"labels": {naming.NAME: "llama", **labels}}, "spec": {}}

    set_of = of(**{naming.GROUP_NAME: "llama-0"})
    service = SET.replace("StatefulSet", "Service")
    told = [
        step("replace", SET, set_of, set_of, {IMAGE: "update-replace"}),
        step("same", service, of(), of()),
    ]
    (line,) = (line for line in review(prod=events(*told)).lines if "Replaced" in line)
    assert "so there is downtime" in line


ROLES = "spec.template.roles[0]"


@pytest.mark.parametrize(
    ("kind", "strategy", "path", "line"),
    [
        (
            "workload.serving.volcano.sh/v1alpha1:ModelServing",
            "ServingGroupRollingUpdate",
            f"{ROLES}.entryTemplate.spec.containers[0].image",
            "**Restarted** ModelServing a: group after group restarts",
        ),
        (
            "workload.serving.volcano.sh/v1alpha1:ModelServing",
            "RoleRollingUpdate",
            f"{ROLES}.workerReplicas",
            "**Restarted** ModelServing a: role after role restarts",
        ),
        (
            "workload.serving.volcano.sh/v1alpha1:ModelServing",
            "",
            f"{ROLES}.replicas",
            "**Scaled** ModelServing a: remaining pods keep running",
        ),
        (
            "leaderworkerset.x-k8s.io/v1:LeaderWorkerSet",
            "",
            "spec.leaderWorkerTemplate.size",
            "**Restarted** LeaderWorkerSet a: group after group restarts",
        ),
        ("apps/v1:Deployment", "", IMAGE, "**Restarted** Deployment a: pods restart a few at"),
        ("apps/v1:StatefulSet", "", IMAGE, "**Restarted** StatefulSet a: pods restart one after"),
        (
            "serving.kserve.io/v1beta1:InferenceService",
            "",
            "spec.predictor.model.image",
            "**Restarted** InferenceService a: the controller may restart pods",
        ),
        ("core/v1:ConfigMap", "", "data.x", "**Changed in place** ConfigMap a (`data.x`)"),
        ("apps/v1:Deployment", "", "metadata.labels.x", "**Changed in place** Deployment a"),
    ],
)
def test_what_an_update_does_to_pods(
    review: Review, kind: str, strategy: str, path: str, line: str
) -> None:
    body = {"spec": {"rolloutStrategy": {"type": strategy}}}
    told = step("update", urn(f"kubernetes:{kind}", "a"), body, body, {path: "update"})
    assert f"- {line}" in review(prod=events(told)).out


def test_replicas_are_told_as_numbers(review: Review) -> None:
    of = urn("kubernetes:apps/v1:Deployment", "a")
    told = step("update", of, {"spec": {"replicas": 1}}, {"spec": {"replicas": 3}})
    assert (
        "- **Scaled** Deployment a: from 1 to 3 replicas; remaining pods keep running "
        "(`spec.replicas`)"
    ) in review(prod=events(told)).lines


def test_what_is_made_and_what_goes_is_counted_and_named(review: Review) -> None:
    kinds = ("apps/v1:Deployment", "core/v1:Service", "core/v1:Service")
    made = [
        step("create", urn(f"kubernetes:{kind}", str(i)), None, {}) for i, kind in enumerate(kinds)
    ]
    gone = step("delete", SET, {"spec": {}}, None)
    ran = review(prod=events(*made, gone))
    assert "- **Created** 1 Deployment, 2 Services" in ran.lines
    assert "- **Deleted** StatefulSet serving/llama-0-serve-0: with the pods" in ran.lines


def test_shapes_are_read_from_anybodys_manifest(review: Review) -> None:
    after = changed(LWS_VLLM, {"spec/replicas": 3})
    ran = review(prod=events(step("update", LWS, changed(LWS_VLLM, {"spec/replicas": 2}), after)))
    assert cells(ran.out, "vllm")[2:] == [
        "1", "2 → 3", "4 → 6", "8", "8 × 2 × 1", "16", "32 → 48", "LeaderWorkerSet",
    ]  # fmt: skip


def test_groups_of_a_model_serving_are_counted(review: Review) -> None:
    role = {"name": "serve", "replicas": 2, "entryTemplate": template("a", "vllm serve m -tp 8")}
    body = {"metadata": {"name": "m"}, "spec": {"replicas": 3, "template": {"roles": [role]}}}
    of = urn("kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing", "m")
    ran = review(prod=events(step("create", of, None, body)))
    assert cells(ran.out, "m (new)")[2:5] == ["3", "6", "6"]
    assert cells(ran.out, "m (new)")[-2] == "0 → 48"


def test_an_object_of_a_component_is_not_counted_twice(review: Review) -> None:
    pods = {"spec": {"template": template("a", "vllm serve m -tp 8")}}
    ran = review(prod=events(serving(None, [row()]), step("create", SET, None, pods)))
    assert "GPUs: **0 → 16 (+16)**" in ran.lines


def test_an_update_is_checked_by_what_was_there(review: Review) -> None:
    at = "spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/resources"
    leader = "spec/leaderWorkerTemplate/leaderTemplate/spec/containers/0/resources"
    after = changed(LWS_VLLM, {"spec/replicas": 3, at: gpus(4), leader: gpus(4)})
    before = changed(LWS_VLLM, {"spec/replicas": 1})
    ran = review(prod=events(step("update", LWS, before, after)))
    assert "so 32 GPUs are needed at once, not 24." in ran.out
    assert ran.status == 0
    ran = review(prod=events(step("replace", LWS, before, after)))
    assert "[lws-lower-then-raise]" not in ran.out


def test_levels_weigh_what_the_review_itself_finds(review: Review, tmp_path: Path) -> None:
    (tmp_path / "levels.json").write_text('{"lws-lower-then-raise": "mandatory"}')
    at = "spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/resources"
    before = changed(LWS_VLLM, {"spec/replicas": 1})
    after = changed(LWS_VLLM, {"spec/replicas": 3, at: gpus(4)})
    told = events(step("update", LWS, before, after))
    assert review("--level", "levels.json", prod=told).status == 1
    assert review("--level", "nothing", prod=told).status == 2


@pytest.mark.parametrize(
    ("text", "status", "title"),
    [
        ("9999-12-31 the quota is twice as large", 0, "Waived:"),
        ("2025-01-01 the quota is twice as large", 1, "Mandatory:"),
    ],
)
def test_what_the_review_itself_finds_is_waived_on_the_object(
    review: Review, tmp_path: Path, text: str, status: int, title: str
) -> None:
    (tmp_path / "levels.json").write_text('{"lws-lower-then-raise": "mandatory"}')
    at = "spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/resources"
    before = changed(LWS_VLLM, {"spec/replicas": 1})
    after = changed(LWS_VLLM, {"spec/replicas": 3, at: gpus(4)})
    waiver = {"waive.kthena-components/lws-lower-then-raise": text}
    after["metadata"]["annotations"] = waiver
    ran = review("--level", "levels.json", prod=events(step("update", LWS, before, after)))
    assert ran.status == status
    assert title in ran.lines


def test_no_value_of_a_resource_or_a_config_is_shown(review: Review) -> None:
    env = [{"name": "HF_TOKEN", "value": TOKEN}]
    pods = template("engine", f"HF_TOKEN={TOKEN} vllm serve m -tp 8")
    pods["spec"]["containers"][0]["env"] = env
    deployment = urn("kubernetes:apps/v1:Deployment", "a")
    secret = urn("kubernetes:core/v1:Secret", "hf")
    told = [
        step("update", deployment, {"spec": {}}, {"spec": {"template": pods}}),
        step("create", secret, None, {"stringData": {"token": TOKEN}}),
        message(f"the token is {TOKEN}", "info"),
        message(f"the token is {TOKEN}", "error"),
        message(f"debug {TOKEN} [image-pinned]", "debug"),
    ]
    for text in (events(*told), document(*told[:2], diagnostics=told[2:])):
        ran = review(prod=text)
        assert TOKEN not in ran.out + ran.err
        assert "Deployment" in ran.out


def test_names_are_text_and_no_markdown(review: Review) -> None:
    wild = row(serving="<img>@all|[x](y)")
    ran = review(prod=events(serving(None, [wild])))
    assert "<img>" not in ran.out
    assert "@all" not in ran.out
    assert "[x](y)" not in ran.out


def test_a_comment_is_never_longer_than_is_taken(review: Review) -> None:
    many = [row(serving=f"llama-{number}" * 9) for number in range(2000)]
    ran = review(prod=events(serving(None, many)))
    assert len(ran.out) < MOST_CHARACTERS + 200
    assert ran.lines[-3].startswith("The comment is too long")
    assert sum(ran.err.count(f"llama-{number}llama-") > 0 for number in range(2000)) == 2000
    assert ran.lines[-1] == MARK


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "op": json_trees() | st.sampled_from(["create", "update", "replace", "delete", "same"]),
            "urn": json_trees() | st.sampled_from([SERVING, LWS, SET, STACK]),
            "oldState": st.fixed_dictionaries({"inputs": json_trees()}) | json_trees(),
            "newState": st.fixed_dictionaries({"inputs": json_trees()}) | json_trees(),
            "detailedDiff": json_trees(),
        },
    ),
    json_trees(),
)
def test_any_step_is_written(item: dict[str, Any], other: Any) -> None:
    item = json.loads(json.dumps(item, default=str))
    told = json.dumps({"steps": [item, other], "diagnostics": [other]}, default=str)
    preview = parse_preview("prod", told)
    stack = reviewed(preview, check_updates(preview, Levels(), date(2026, 6, 30)))
    assert write_comment([stack]).endswith(f"{MARK}\n")


def test_a_value_that_is_not_known_is_a_question_mark(review: Review) -> None:
    after = changed(LWS_VLLM, {"spec/replicas": LATE})
    ran = review(prod=events(step("create", LWS, None, after)))
    assert cells(ran.out, "vllm (new)")[3] == "?"
