"""A waiver of the base is for one object of one stack, and does not follow to another."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from kthena_components.cli.review.preview import Preview, PreviewFinding, Weight, parse_preview
from kthena_components.cli.review.strictness import BaseStack, BaseWaivers, is_code
from tests.cli.previews import events, step, urn

TODAY = date(2026, 1, 1)
REASON = "the new runtime gives 8 GiB"
WAIVER = f"2026-12-31 {REASON}"
RULE = "shm-present"
STATED = {RULE: WAIVER}
CODE = f'ModelServing("llama", name="llama", waivers={{"{RULE}": "{WAIVER}"}})\n'
SERVING = urn("kthena:index:ModelServing", "llama")
SET = urn("kubernetes:apps/v1:StatefulSet", "llama-0", "kthena:index:ModelServing")
OWN = urn("kubernetes:apps/v1:StatefulSet", "llama")
Body = dict[str, Any]


def component(
    namespace: str = "serving", waivers: Body | None = STATED, name: str = "llama"
) -> Body:
    return {"name": name, "namespace": namespace, **({"waivers": waivers} if waivers else {})}


def manifest(namespace: str = "serving", text: str | None = WAIVER, name: str = "llama") -> Body:
    annotations = {f"waive.kthena-components/{RULE}": text} if text else {}
    return {"metadata": {"name": name, "namespace": namespace, "annotations": annotations}}


def preview(*steps: Body, parents: dict[str, str] | None = None) -> Preview:
    made = parse_preview("prod", events(*steps))
    for child, parent in (parents or {}).items():
        made.steps[child] = replace(made.steps[child], parent=parent)
    return made


def stack(*servings: Body) -> BaseStack:
    return BaseStack(values={"servings": list(servings)}, text=repr(servings))


def weight(
    of: Preview,
    at: str,
    *code: str,
    base: BaseStack | None = BaseStack(values={}, text=""),  # noqa: B008 - it is frozen
    until: str = "2026-12-31",
    reason: str = REASON,
    rule: str = RULE,
) -> Weight:
    text = f"spec: has no /dev/shm. Mount one. Waived until {until}: {reason}. [{rule}]"
    said = PreviewFinding(weight=Weight.WAIVED, rule=rule, text=text, urn=at)
    waivers = BaseWaivers(code=lambda: code, stacks=lambda _: base, today=TODAY)
    return next(waivers.apply([said], of)).weight


def deployed(before: Body | None, after: Body, at: str = SERVING) -> Preview:
    """Give a preview of a stack with state."""
    old = step("same", urn("kubernetes:core/v1:Service", "other"), {"a": 1}, {"a": 1})
    return preview(old, step("create" if before is None else "update", at, before, after))


@pytest.mark.parametrize("at", [SERVING, OWN])
def test_a_waiver_that_was_deployed_and_is_in_the_code_of_the_base_stays(at: str) -> None:
    inputs = component() if at == SERVING else manifest()
    assert weight(deployed(inputs, inputs, at), at, CODE) is Weight.WAIVED


@pytest.mark.parametrize(
    ("before", "after", "at"),
    [
        (None, component(), SERVING),
        (component("serving"), component("other"), SERVING),
        (component(name="chat"), component(), SERVING),
        (component(waivers=None), component(), SERVING),
        (component(waivers={RULE: f"2026-06-30 {REASON}"}), component(), SERVING),
        (component(waivers={"gang-covers-engine": WAIVER}), component(), SERVING),
        (None, manifest(), OWN),
        (manifest("serving"), manifest("other"), OWN),
        (manifest(text=None), manifest(), OWN),
        (manifest(name="chat"), manifest(), OWN),
    ],
)
def test_a_waiver_in_code_does_not_follow_to_another_object(
    before: Body | None, after: Body, at: str
) -> None:
    assert weight(deployed(before, after, at), at, CODE) is Weight.MANDATORY


def test_a_waiver_that_was_deployed_but_is_no_longer_in_the_base_does_not_count() -> None:
    of = deployed(component(), component())
    assert weight(of, SERVING, CODE.replace("2026", "2025")) is Weight.MANDATORY
    assert weight(of, SERVING) is Weight.MANDATORY


def test_objects_of_a_component_have_its_waivers() -> None:
    """A further replica is a new object, and its waiver comes from the component."""
    old = step("update", SERVING, component(), component())
    new = step("create", SET, None, manifest(name="llama-1"))
    of = preview(old, new, parents={SET: SERVING})
    assert weight(of, SET, CODE) is Weight.WAIVED
    assert weight(preview(old, new), SET, CODE) is Weight.MANDATORY, "it belongs to no component"
    moved = step("update", SERVING, component(), component("other"))
    assert weight(preview(moved, new, parents={SET: SERVING}), SET, CODE) is Weight.MANDATORY


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (stack(component()), Weight.WAIVED),
        (stack(component(waivers={RULE: f"2027-12-31 {REASON}"})), Weight.WAIVED),
        (stack(component("other")), Weight.MANDATORY),
        (stack(component(name="chat")), Weight.MANDATORY),
        (stack(component(waivers={RULE: f"2026-06-30 {REASON}"})), Weight.MANDATORY),
        (stack(component(waivers={"gang-covers-engine": WAIVER})), Weight.MANDATORY),
        (
            stack({"name": "chat", "roles": [{"name": "llama", "waivers": STATED}]}),
            Weight.MANDATORY,
        ),
        (None, Weight.MANDATORY),
    ],
)
def test_a_stack_file_tells_which_object_it_waives(
    base: BaseStack | None, expected: Weight
) -> None:
    """The serving is new in the state, so only the file of this stack tells."""
    assert weight(deployed(None, component()), SERVING, base=base) is expected


def test_a_waiver_of_a_component_is_for_no_object_of_that_name() -> None:
    of = deployed(None, manifest(), OWN)
    assert weight(of, OWN, base=stack(component())) is Weight.MANDATORY


def test_without_a_state_nobody_knows_which_objects_are_new() -> None:
    of = preview(step("create", SERVING, None, component()))
    assert weight(of, SERVING, CODE) is Weight.UNKNOWN
    assert weight(of, SERVING, "") is Weight.MANDATORY
    assert weight(of, SERVING, CODE, base=None) is Weight.MANDATORY, "the stack is new"
    assert weight(of, SERVING, base=stack(component())) is Weight.WAIVED
    waivers = BaseWaivers(
        code=lambda: [CODE], stacks=lambda _: BaseStack(values={}, text=""), today=TODAY
    )
    text = f"spec: x. Waived until 2026-12-31: {REASON}. [{RULE}]"
    said = PreviewFinding(weight=Weight.WAIVED, rule=RULE, text=text, urn=SERVING)
    (told,) = waivers.apply([said], of)
    assert told.text == (
        f"spec: x. Waived until 2026-12-31: {REASON}. Whether the base waives it for this object "
        f"was not checked, because the preview has no state. [{RULE}]"
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (CODE, Weight.WAIVED),
        (f'"{RULE}": "2026-12-31 the new runtime "\n    "gives 8 GiB"', Weight.WAIVED),
        (f"{RULE}: >-\n  2026-12-31 the new\n  runtime gives 8 GiB.\n", Weight.WAIVED),
        (f'"{RULE}": "2026-12-31 the " + "new runtime gives 8 GiB",', Weight.WAIVED),
        (CODE.replace(RULE, "gang-covers-engine"), Weight.MANDATORY),
        (CODE.replace("8 GiB", "8 GiB and more"), Weight.MANDATORY),
        (CODE.replace("2026-12-31", "2026-12-30"), Weight.MANDATORY),
    ],
)
def test_a_waiver_counts_that_the_base_has_word_for_word(code: str, expected: Weight) -> None:
    assert weight(deployed(component(), component()), SERVING, code) is expected


@pytest.mark.parametrize("written", ['"it\\\'s known"', "'it''s known'", '"it\'s known"'])
def test_a_waiver_may_contain_quotes(written: str) -> None:
    code = f"{RULE}: {written.replace('it', '2026-12-31 it', 1)}\n"
    stated = component(waivers={RULE: "2026-12-31 it's known"})
    of = deployed(stated, stated)
    assert weight(of, SERVING, code, reason="it's known") is Weight.WAIVED
    assert weight(of, SERVING, code, reason="it's") is Weight.MANDATORY


def test_only_the_last_clause_of_a_finding_is_its_waiver() -> None:
    of = deployed(component(), component())
    twice = f"{REASON}. Waived until 2030-01-01: y"
    assert weight(of, SERVING, CODE, reason=twice) is Weight.MANDATORY
    assert weight(of, SERVING, CODE, until="2026-99-99") is Weight.MANDATORY


@pytest.mark.parametrize(
    ("path", "expected"),
    [("__main__.py", True), ("k8s/a.yaml", True), ("tests/a.yaml", True), ("a.png", False)],
)
def test_waivers_are_looked_for_in_code(path: str, expected: bool) -> None:
    assert is_code(path) is expected
