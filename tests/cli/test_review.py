"""`kthena-components review`: shapes and findings of previews, as a comment on a pull request."""

import json
from pathlib import Path
from typing import Any

import pytest

from kthena_components.checker.check_cluster_objects import memory_unchecked_in
from kthena_components.cli.review.comment import MARK
from kthena_components.core.hardware import NO_CHOICE
from tests.cli.conftest import Review
from tests.cli.previews import (
    SERVING,
    SET,
    STACK,
    WORKERS,
    Body,
    cells,
    document,
    events,
    message,
    row,
    serving,
    step,
    urn,
    violation,
)
from tests.rules.cases import documents
from tests.support.for_each import for_each
from tests.support.specs import changed

WRONG = (
    "spec.template.roles[0].entryTemplate.spec.containers[0].command: engine 'decode' starts "
    "tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. Set pipeline to 3, or give "
    "the engine 2 pods. [world-size-equals-gpus]"
)
SENTENCE = WRONG.partition(": ")[2]


def test_a_shape_is_shown_before_and_after(review: Review) -> None:
    wider = row(pods=3, pipeline=3, world_size=24, gpus=24)
    ran = review(prod=events(serving([row()], [wider])))
    assert ran.status == 0
    assert ran.lines[-1] == MARK
    assert "1 stack affected: **no mandatory findings**. GPUs: 16 → 24 (+8)." in ran.lines
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
    assert "- Policies: the preview ran without a policy pack, or does not report one" in (
        from_json.lines
    )
    assert "- Policies:" not in from_events.out


def test_what_is_new_and_what_is_removed_is_said(review: Review) -> None:
    ran = review(prod=events(serving(None, [row()])))
    assert cells(ran.out, "serving/llama (new)")[-2] == "0 → 16"
    ran = review(prod=events(serving([row()], None)))
    assert cells(ran.out, "serving/llama (removed)")[-2] == "16 → 0"
    assert "GPUs: **16 → 0 (-16)**" in ran.lines


def test_a_stack_whose_shapes_stay_says_so(review: Review) -> None:
    ran = review(prod=events(step("same", SERVING, {"shape": [row()]}, {"shape": [row()]})))
    assert "No sizes change: 1 role, 16 GPUs." in ran.lines
    assert "No resources change." in ran.lines


def test_the_pods_of_a_manifest_all_count(review: Review) -> None:
    bodies = [{**changed(documents("stateful-set")[0], {"spec.replicas": n})} for n in (2, 4)]
    ran = review(prod=events(step("update", urn("kubernetes:apps/v1:StatefulSet", "l"), *bodies)))
    assert "1 stack affected: **no mandatory findings**. GPUs: 16 → 32 (+16)." in ran.lines
    assert cells(ran.out, "serving/llama")[2:5] == ["1", "2 → 4", "2 → 4"]
    assert cells(ran.out, "serving/llama")[-2] == "16 → 32"


def test_several_stacks_are_summed(review: Review) -> None:
    one = events(serving(None, [row()]))
    two = events(serving([row()], [row(gpus=8)]))
    ran = review(dev=one, prod=two)
    assert "2 stacks affected: **no mandatory findings**. GPUs: 16 → 24 (+8)." in ran.lines
    assert [line for line in ran.lines if line.startswith("### ")] == [
        "### Stack dev: **passes**",
        "### Stack prod: **passes**",
    ]


def test_gpus_that_are_not_known_are_told_and_not_counted(review: Review) -> None:
    ran = review(prod=events(serving([row()], [row(gpus="?", gpus_per_pod="?")])))
    assert cells(ran.out, "serving/llama")[-2] == "16 → ?"
    assert "- GPUs of 1 role: known only after the update, or secret" in ran.lines


def test_a_mandatory_finding_refuses(review: Review) -> None:
    ran = review(prod=events(violation(WRONG, SERVING), result="failed"))
    assert ran.status == 1
    assert "### Stack prod: **fails**, 1 mandatory finding" in ran.lines
    (line,) = (line for line in ran.lines if line.endswith("[world-size-equals-gpus]"))
    assert line.startswith("- ModelServing serving/llama: spec.template.roles\\[0\\]")
    assert line.endswith(SENTENCE)


def test_equal_findings_of_several_servings_are_counted(review: Review) -> None:
    """A program that refuses its config reports all of them at the stack."""
    told = [f"a.yaml: p:servings[{number}].engine: {SENTENCE}" for number in range(3)]
    ran = review(prod=events(message("\n".join(told), "error", urn=STACK), result="failed"))
    (line,) = (line for line in ran.lines if "[world-size-equals-gpus]" in line)
    assert "servings\\[0\\]" in line
    assert line.endswith("(and 2 more)")


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
        ("a: is odd. [image-pinned]", "advisory", "Advisory:"),
        ("a: not checked, because b. [image-pinned]", "advisory", "Not checked:"),
        ("a: is odd. Waived until 2030-01-31: soon. [image-pinned]", "advisory", "Waived:"),
        ("a: not checked, because b. [image-pinned]", "mandatory", "Mandatory:"),
        ("somebody else's rule", "advisory", "Advisory:"),
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
    assert "### Stack prod: **fails**, 1 mandatory finding" in ran.lines
    assert "Currently deployed:" in ran.out
    assert cells(ran.out, "serving/llama")[-2] == "16"
    assert f"- servings\\[0\\]: {SENTENCE}" in ran.lines
    assert "Planned changes:" not in ran.out


REFUSED = f"ModelServing 'chat' is refused: 1 problem\n  roles[0].engine.parallelism: {SENTENCE}"


def deployed(**servings: Body) -> str:
    """Write what `pulumi stack export` writes of a stack with some servings."""
    of = SERVING.rpartition("::")[0]
    resources = [
        {"urn": f"{of}::{name}", "type": "kthena:index:ModelServing", "inputs": {"shape": [one]}}
        for name, one in servings.items()
    ]
    return json.dumps({"version": 3, "deployment": {"resources": resources}})


def test_a_refused_component_is_named(review: Review) -> None:
    other = REFUSED.replace("'chat'", "'other'")
    ran = review(prod=events(message(REFUSED), message(other), result="failed"))
    told = f"roles\\[0\\].engine.parallelism: {SENTENCE}"
    assert f"- ModelServing chat: {told}" in ran.lines
    assert f"- ModelServing other: {told}" in ran.lines
    assert "### Stack prod: **fails**, 2 mandatory findings" in ran.lines


def test_what_a_stopped_program_did_not_register_counts_as_deployed(review: Review) -> None:
    grown = serving([row()], [row(pods=4, gpus=32)])
    state = deployed(**{"serving/llama": row(), "chat": row(serving="chat", gpus=12)})
    Path("state.json").write_text(state)
    stopped = events(grown, message(f"roles[0]: {SENTENCE}"), result="failed")
    ran = review("--state", "prod=state.json", prod=stopped)
    assert ran.status == 1
    assert cells(ran.out, "serving/chat (as deployed)")[-2] == "12"
    assert "GPUs: **28 → 44 (+16)**" in ran.lines
    assert "Servings that it did not register count as deployed." in ran.out
    without = review(prod=stopped)
    assert "GPUs: **16 → 32 (+16)**" in without.lines
    assert "The GPUs are those of the servings that it registered." in without.out
    finished = review("--state", "prod=state.json", prod=events(grown))
    assert "GPUs: **16 → 32 (+16)**" in finished.lines, "the engine tells all that it deletes"


def test_a_program_that_registered_nothing_shows_what_its_state_has(review: Review) -> None:
    Path("state.json").write_text(deployed(chat=row(serving="chat", gpus=12)))
    ran = review("--state", "prod=state.json", prod=events(message(REFUSED), result="failed"))
    assert "Currently deployed:" in ran.out
    assert cells(ran.out, "serving/chat")[-2] == "12"


@pytest.mark.parametrize("text", ["{", "[]", "{}", None])
def test_a_state_that_cannot_be_read_is_named(review: Review, text: str | None) -> None:
    if text is not None:
        Path("state.json").write_text(text)
    ran = review("--state", "prod=state.json", prod=events(serving(None, [row()])))
    assert ran.status == 2
    assert "the state of stack prod cannot be read" in ran.out
    assert "state.json: " in ran.err


def test_a_state_of_no_preview_is_wrong_usage(review: Review) -> None:
    ran = review("--state", "dev=state.json", prod=events(serving(None, [row()])))
    assert ran.status == 2
    assert "--state dev: there is no preview of a stack with this name" in ran.err


EXITED = "an unhandled error occurred: Program exited with non-zero exit code: 1"


@pytest.mark.parametrize("last", [EXITED, EXITED.replace("Program exited", "The program ended")])
def test_the_line_of_pulumi_after_a_refusal_of_a_program_is_no_error(
    review: Review, last: str
) -> None:
    refusal = message(f"ModelServing 'chat' is refused: 1 problem\n  roles[0]: {SENTENCE}")
    ran = review(prod=events(refusal, message(f"error: {last}"), result="failed"))
    assert ran.status == 1
    assert "### Stack prod: **fails**, 1 mandatory finding" in ran.lines
    beside = [message("Traceback: of something"), message(last)]
    ran = review(prod=events(refusal, *beside, result="failed"))
    assert ran.status == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (events(message(EXITED), result="failed"), "failed with 1 error"),
        (events(message("Exited: of something"), result="failed"), "failed with 1 error"),
        (events(message("preview failed"), result="failed"), "failed without a finding"),
        (events(result=None), "did not finish"),
        ("", "did not finish"),
    ],
)
def test_a_preview_that_failed_otherwise_checks_nothing(
    review: Review, text: str, says: str
) -> None:
    ran = review(prod=text)
    assert ran.status == 2
    assert "### Stack prod: **not checked**, the preview failed" in ran.lines
    assert says in ran.out
    assert EXITED not in ran.out


def test_a_file_that_is_no_preview_is_named(review: Review) -> None:
    ran = review(prod="token: hf_x", dev=events(serving(None, [row()])))
    assert ran.status == 2
    assert ran.err.startswith("prod.jsonl: is not a preview of Pulumi, because it is not JSON: ")
    assert ran.lines[0] == "**Not checked:** the preview of stack prod cannot be read."
    assert "### Stack dev: **passes**" in ran.lines
    assert review("prod=nowhere").err.startswith("nowhere: cannot read the file: ")
    assert review("prod").status == 2


def test_nothing_touched_is_said(review: Review) -> None:
    ran = review("--note", "Stack old: its file is deleted.")
    assert ran.status == 0
    told = ["This change affects no stack.", "", "Stack old: its file is deleted.", "", MARK]
    assert ran.lines[-5:] == told


def test_a_serving_that_a_secret_hides_is_told_and_not_left_out(review: Review) -> None:
    mark = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
    hidden = {**mark, "ciphertext": "[secret]"}
    body = {
        "metadata": {"name": "llama", "namespace": "serving"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": hidden}}},
    }
    made = step("create", urn("kubernetes:apps/v1:Deployment", "llama"), None, body)
    ran = review(prod=events(made))
    assert cells(ran.out, "serving/llama (new)")[4:6] == ["?", "?"]
    assert "plus 1 role with an unknown number" in ran.out
    assert "- GPUs of 1 role: known only after the update, or secret" in ran.lines


def test_memory_that_the_policies_did_not_check_is_not_advice(review: Review) -> None:
    command = ["vllm", "serve", "Qwen/Qwen3-32B"]
    engine = {"name": "e", "command": command, "resources": {"limits": {"nvidia.com/gpu": 8}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [engine]},
    }
    (note,) = memory_unchecked_in([body], NO_CHOICE)
    ran = review(prod=events(violation(str(note), "", "advisory")))
    assert ran.lines.count(f"- {note}") == 1
    assert ran.lines[ran.lines.index(f"- {note}") - 2] == "Not checked:"


def memory(review: Review, text: str) -> list[str]:
    """Return the lines of a review about memory."""
    return [line for line in review(prod=text).lines if "[memory-weights-fit]" in line]


def engine(**pod: Any) -> dict[str, Any]:
    """Give the step that creates a Deployment with an engine of 8 GPUs."""
    of = urn("kubernetes:apps/v1:Deployment", "llama")
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.9.2",
        "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--tensor-parallel-size", "8"],
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container], **pod}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return step("create", of, None, {"metadata": {"name": "llama"}, "spec": spec})


@for_each("write", [document, lambda *told: events(*told, packs=0)])
def test_without_a_pack_the_review_says_that_no_gpu_is_named(write: Any, review: Review) -> None:
    (line,) = memory(review, write(engine()))
    assert line.startswith(
        "- memory of Deployment default/llama was not checked, because nothing names the GPU. "
        "Name it by resources.gpu of a role"
    )
    named = {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}
    assert memory(review, write(engine(**named))) == []
    by_stack = write(engine()).replace('"shop:token"', '"kthena-components:gpu": "h100", "token"')
    assert '"kthena-components:gpu"' in by_stack
    assert memory(review, by_stack) == []


def test_the_review_leaves_memory_to_the_pack(review: Review) -> None:
    assert memory(review, events(engine())) == []
