"""Every stack and every example from the first preview to the last file, without a cluster."""

import base64
from collections import Counter

import pytest

from kthena_components.convert.conversion import SAME, Changes, Kept, title_of
from kthena_components.convert.convert import convert
from kthena_components.core import naming
from kthena_components.systems.booster.emit import EMITTER as BOOSTER
from tests.pulumi.lives import CASES, NEW_IMAGE, TOKEN, Life, live
from tests.support.engine import ROOT, Run

pytestmark = pytest.mark.programs
COMPONENTS = "kthena:index:"


@pytest.fixture(scope="module", params=CASES)
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    return live(CASES[request.param], tmp_path_factory.mktemp(request.param))


def test_every_stack_and_every_example_is_lived() -> None:
    examples = {path.parent.name for path in (ROOT / "examples").glob("*/Pulumi.yaml")}
    stacks = {path.suffixes[0].removeprefix(".") for path in (ROOT / "stacks").iterdir()}
    assert examples | stacks == set(CASES)


def test_each_command_ends_well_and_without_a_traceback(life: Life) -> None:
    for run in life.runs:
        assert run.code == 0, run.text
        assert "Traceback" not in run.text


def test_a_preview_announces_what_the_update_makes_and_writes_nothing(life: Life) -> None:
    assert life.previewed.changes == life.created.changes == {"create": life.case.resources}
    assert not life.written_by_preview


def test_each_object_that_is_made_is_written_to_a_file(life: Life) -> None:
    made = [step for step in life.created.steps if step.type.startswith("kubernetes:")]
    assert len(life.written) == len(made)
    # A Secret of the program itself says that Pulumi chose its name.
    ours = [body for name, body in life.written.items() if not name.startswith("Secret/")]
    assert "pulumi.com/" not in str(ours)


def test_what_is_written_converts_back_without_a_loss(life: Life) -> None:
    """Except hashes over Outputs. A Role alone comes back as a serving, with a gang."""
    bodies = list(life.written.values())
    if life.case.source.name == "model-booster":
        assert BOOSTER.converter is None, "with one, it must convert back, too"
        return
    result = convert(bodies, Changes(target=SAME))
    assert result.errors == ()
    hashes = (naming.REVISION, naming.ROLE_TEMPLATE_HASH)
    lost = [loss.name for part in result.parts for loss in part.losses]
    assert [name for name in lost if not name.endswith(hashes)] == []
    assert not lost or life.case.source.name == "secret-token"
    made = [m.body for serving in result.servings for m in serving.compiled.manifests]
    kept = [part.body for part in result.parts if isinstance(part, Kept)]
    missing = {*map(title_of, bodies)} - {*map(title_of, made), *map(title_of, kept)}
    assert missing == set()


def test_a_second_update_changes_nothing(life: Life) -> None:
    assert set(life.again.changes) == {"same"}


def test_another_image_makes_the_sets_of_an_engine_anew_and_nothing_else(life: Life) -> None:
    ops = dict.fromkeys(("delete-replaced", "replace", "create-replacement"), life.case.remade)
    assert life.changed.ops("StatefulSet") == +Counter(ops)
    assert life.changed.changes.get("replace", 0) == life.case.remade + life.case.replaced
    assert life.changed.changes.get("update", 0) == life.case.updated


def test_a_set_is_gone_before_its_namesake_is_made(life: Life) -> None:
    order = [(step.op, step.name) for step in life.changed.steps if step.kind == "StatefulSet"]
    for _, name in order:
        assert order.index(("delete-replaced", name)) < order.index(("create-replacement", name))


def test_a_group_is_touched_only_when_the_one_before_it_is_there_again(life: Life) -> None:
    names = [step.name for step in life.changed.steps if step.kind == "StatefulSet"]
    groups = [1 if "405b-1" in name else 0 for name in names]
    assert groups == sorted(groups)


def test_another_image_changes_a_custom_resource_in_place(life: Life) -> None:
    changed = [step for step in life.changed.steps if step.op == "update"]
    assert {step.kind for step in changed} <= {
        "InferenceService",
        "LeaderWorkerSet",
        "ModelBooster",
        "ModelInfer",
        "ModelServing",
    }
    assert not [step for step in changed if step.type.startswith(COMPONENTS)]


def test_the_files_hold_the_new_image_only(life: Life) -> None:
    assert life.rewritten.keys() == life.written.keys()
    text = str(life.rewritten)
    assert not [image for image in NEW_IMAGE if f"'{image}'" in text]
    assert any(f"'{image}'" in text for image in NEW_IMAGE.values())


def test_taken_down_it_leaves_nothing(life: Life) -> None:
    assert life.destroyed.changes == {"delete": life.case.resources}
    assert not life.left
    assert not life.left_on_disk


def test_a_token_is_neither_shown_nor_stored_in_plain_text(life: Life) -> None:
    for form in (TOKEN, base64.b64encode(TOKEN.encode()).decode()):
        assert form not in life.state
        assert not [run for run in life.runs if form in run.text or form in str(run.events)]


def test_servings_come_after_what_they_need_and_go_before_it(life: Life) -> None:
    for run, servings_last in ((life.created, True), (life.destroyed, False)):
        first, last = _span(run, {"StatefulSet", "PodGroup"})
        needed = [i for i, step in enumerate(run.steps) if step.kind in {"Secret", "Queue"}]
        assert all(i < first if servings_last else i > last for i in needed)


def _span(run: Run, kinds: set[str]) -> tuple[int, int]:
    found = [i for i, step in enumerate(run.steps) if step.kind in kinds] or [0]
    return found[0], found[-1]
