"""`kthena-components review`: from previews to the comment on a pull request."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.cli.comment import MARK, MOST_CHARACTERS, reviewed, write_comment
from kthena_components.cli.levels import read_levels
from kthena_components.cli.main import main
from kthena_components.cli.preview import parse_preview
from kthena_components.cli.review import judge_updates
from tests.cli.conftest import Ran
from tests.cli.previews import (
    PART,
    SERVING,
    STACK,
    TOKEN,
    document,
    events,
    message,
    row,
    serving,
    step,
    urn,
    violation,
)
from tests.support.peers import LATE, LWS_VLLM, changed, gpus, template
from tests.support.strategies import json_trees

Review = Callable[..., Ran]
WRONG = (
    "spec.template.roles[0].entryTemplate.spec.containers[0].command: engine 'decode' starts "
    "tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. Set pipeline to 3, or give "
    "the engine 2 pods. [world-size-equals-gpus]"
)
SENTENCE = WRONG.partition(": ")[2]
SET = urn("kubernetes:apps/v1:StatefulSet", "serving/llama-0-serve-0", PART)
WORKERS = urn("kubernetes:apps/v1:StatefulSet", "serving/llama-0-serve-0-w", PART)
LWS = urn("kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "vllm")


@pytest.fixture
def review(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Review:
    """Run `review` on previews by stack, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, **previews: str) -> Ran:
        for stack, text in previews.items():
            Path(f"{stack}.jsonl").write_text(text)
        try:
            status = main(["review", *arguments, *(f"{s}={s}.jsonl" for s in previews)])
        except SystemExit as left:
            status = int(left.code or 0)
        told = capsys.readouterr()
        return Ran(status, told.out, told.err)

    return command


def cells(text: str, first: str) -> list[str]:
    """Give the cells of the line of a table that begins with a text."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {first} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_shape_is_shown_before_and_after(review: Review) -> None:
    wider = row(pods=3, pipeline=3, world_size=24, gpus=24)
    ran = review(prod=events(serving([row()], [wider])))
    assert ran.status == 0
    assert ran.lines[0] == MARK
    assert "1 stack touched: **nothing refused**. GPUs: 16 → 24 (+8)." in ran.lines
    assert "### Stack prod: **passes**" in ran.lines
    assert cells(ran.out, "serving/llama") == [
        "serving/llama", "serve", "1", "1", "2 → 3", "8", "8 × 2 × 1 → 8 × 3 × 1", "16 → 24",
        "16 → 24", "native",
    ]  # fmt: skip
    assert cells(ran.out, "total")[-2] == "16 → 24"
    assert "GPUs: **16 → 24 (+8)**" in ran.lines


def test_both_forms_of_a_preview_tell_the_same_shapes(review: Review) -> None:
    told = serving([row()], [row(groups=2, engines=2, pods=4, gpus=32)])
    from_events, from_json = review(prod=events(told)), review(prod=document(told))
    assert cells(from_events.out, "serving/llama") == cells(from_json.out, "serving/llama")
    assert "- The policies: the preview ran without a policy pack, or does not tell" in (
        from_json.lines
    )
    assert "The policies:" not in from_events.out


def test_what_is_new_and_what_is_removed_is_said(review: Review) -> None:
    ran = review(prod=events(serving(None, [row()])))
    assert cells(ran.out, "serving/llama (new)")[-2] == "0 → 16"
    ran = review(prod=events(serving([row()], None)))
    assert cells(ran.out, "serving/llama (removed)")[-2] == "16 → 0"
    assert "GPUs: **16 → 0 (-16)**" in ran.lines


def test_a_stack_whose_shapes_stay_says_so(review: Review) -> None:
    ran = review(prod=events(step("same", SERVING, {"shape": [row()]}, {"shape": [row()]})))
    assert "No shape changes: 1 role, 16 GPUs." in ran.lines
    assert "Nothing that runs is touched." in ran.lines


def test_several_stacks_are_summed(review: Review) -> None:
    one = events(serving(None, [row()]))
    two = events(serving([row()], [row(gpus=8)]))
    ran = review(dev=one, prod=two)
    assert "2 stacks touched: **nothing refused**. GPUs: 16 → 24 (+8)." in ran.lines
    assert [line for line in ran.lines if line.startswith("### ")] == [
        "### Stack dev: **passes**",
        "### Stack prod: **passes**",
    ]


def test_gpus_that_are_not_known_are_told_and_not_counted(review: Review) -> None:
    ran = review(prod=events(serving([row()], [row(gpus="?", gpus_per_pod="?")])))
    assert cells(ran.out, "serving/llama")[-2] == "16 → ?"
    assert "- The GPUs of 1 role: a number is known only after the update" in ran.lines


def test_a_mandatory_finding_refuses(review: Review) -> None:
    ran = review(prod=events(violation(WRONG, SERVING), result="failed"))
    assert ran.status == 1
    assert "### Stack prod: **refused**, 1 mandatory finding" in ran.lines
    (line,) = (line for line in ran.lines if line.endswith("[world-size-equals-gpus]"))
    assert line.startswith("- ModelServing serving/llama: spec.template.roles\\[0\\]")
    assert line.endswith(SENTENCE)


def test_one_thing_is_said_once(review: Review) -> None:
    """The component says it in the user's coordinates, the pack of each object that it makes."""
    own = f"roles[0].engine.parallelism: {SENTENCE}"
    told = [violation(WRONG, name, "advisory") for name in (SET, WORKERS)]
    ran = review(prod=events(message(own, "info", urn=SERVING), *told))
    (line,) = (line for line in ran.lines if "[world-size-equals-gpus]" in line)
    where = "ModelServing serving/llama: roles\\[0\\].engine.parallelism"
    assert line == f"- {where}: {SENTENCE} (and 2 more)"


@pytest.mark.parametrize(
    ("text", "level", "title"),
    [
        ("a: is odd. [image-pinned]", "advisory", "Worth a look:"),
        ("a: not checked, because b. [image-pinned]", "advisory", "Not checked, and why:"),
        ("a: is odd. Waived until 2030-01-31: soon. [image-pinned]", "advisory", "Waived:"),
        ("a: not checked, because b. [image-pinned]", "mandatory", "Refused:"),
        ("somebody else's rule", "advisory", "Worth a look:"),
    ],
)
def test_findings_stand_under_what_they_weigh(
    review: Review, text: str, level: str, title: str
) -> None:
    ran = review(prod=events(violation(text, SERVING, level)))
    at = ran.lines.index(title)
    rule = "" if text.endswith("]") else " [serving-rules]"
    assert ran.lines[at + 2] == f"- ModelServing serving/llama: {text}{rule}"


def test_a_program_that_refuses_shows_what_is_deployed(review: Review) -> None:
    refusal = f"stack 'prod' is refused: 1 problem\n  servings[0]: {SENTENCE}"
    root = step("same", STACK, {"servings": [row()]}, {})
    ran = review(prod=events(root, message(refusal), result="failed"))
    assert ran.status == 1
    assert "### Stack prod: **refused**, 1 mandatory finding" in ran.lines
    assert "Deployed is:" in ran.out
    assert cells(ran.out, "serving/llama")[-2] == "16"
    assert f"- servings\\[0\\]: {SENTENCE}" in ran.lines
    assert "What would happen:" not in ran.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (events(message("Traceback: of something"), result="failed"), "failed with 1 error"),
        (events(message("preview failed"), result="failed"), "no finding says why"),
        (events(result=None), "did not come to its end"),
        ("", "did not come to its end"),
    ],
)
def test_a_preview_that_failed_otherwise_judges_nothing(
    review: Review, text: str, says: str
) -> None:
    ran = review(prod=text)
    assert ran.status == 2
    assert "### Stack prod: **not judged**, its preview failed" in ran.lines
    assert says in ran.out
    assert "Traceback" not in ran.out


def test_a_file_that_is_no_preview_is_named(review: Review) -> None:
    ran = review(prod="token: hf_x", dev=events(serving(None, [row()])))
    assert ran.status == 2
    assert ran.err.startswith("prod.jsonl: is no preview of Pulumi's: ")
    assert "Stack prod: its preview could not be read." in ran.lines
    assert "### Stack dev: **passes**" in ran.lines
    assert review("prod=nowhere").err.startswith("nowhere: cannot be read: ")
    assert review("prod").status == 2


def test_nothing_touched_is_said(review: Review) -> None:
    ran = review("--note", "Stack old: its file is deleted.")
    assert ran.status == 0
    assert ran.lines[-3:] == ["No stack is touched.", "", "Stack old: its file is deleted."]


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
        "- **Replaced** StatefulSets serving/llama-0-serve-0, serving/llama-0-serve-0-w: pods end "
        f"before new ones start, so what they serve is down in between (`{IMAGE}`)"
    )


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
            "**Scaled** ModelServing a: what stays keeps running",
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
        "- **Scaled** Deployment a: from 1 to 3 copies, and what stays keeps running "
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


def test_an_update_is_judged_by_what_was_there(review: Review) -> None:
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
    assert ran.lines[-1].startswith("The rest is left out")


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
    stack = reviewed(preview, judge_updates(preview, read_levels(None)))
    assert write_comment([stack]).startswith(MARK)


def test_a_value_that_is_not_known_is_a_question_mark(review: Review) -> None:
    after = changed(LWS_VLLM, {"spec/replicas": LATE})
    ran = review(prod=events(step("create", LWS, None, after)))
    assert cells(ran.out, "vllm (new)")[3] == "?"
