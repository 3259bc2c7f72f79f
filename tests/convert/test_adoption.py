"""What is written for an object that a program takes over equals the object.

conformance/pulumi/adoption.py does this with real controllers, whose pods must stay.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.pulumi.adoption import with_limits_only
from kthena_components.compiler.compile import compile_serving
from kthena_components.convert.conversion import SAME, Changes, Converted
from kthena_components.convert.convert import convert
from kthena_components.convert.lost_fields import changed_by_adoption, find_losses
from kthena_components.convert.sources_and_kept import converters
from kthena_components.core.values.read import group_kind
from tests.support.specs import GUIDE, changed, example_for

ROOT = Path(__file__).parents[2]
ONE_OBJECT = ("kthena", "lws", "matrixinfer", "kaito")
"""Backends whose servings are one object. KServe merges several before there are pods."""
BASES = [
    path
    for name in ONE_OBJECT
    for pattern in (f"systems/{name}/bases/*.yaml", f"goldens/{name}/g*.yaml")
    for path in sorted((ROOT / "tests").glob(pattern))
]
CONVERTERS = {kind: one for _, _, one in converters() for kind in one.kinds}
TAKEN = ("kthena", "lws", "matrixinfer")
"""Backends whose controllers do not count GPUs in the templates. KServe does: there, an object
without requests is another engine."""
Body = dict[str, Any]


def adopted(bodies: list[Body]) -> list[Converted]:
    found = convert(bodies, Changes(target=SAME, adopts=True))
    assert found.errors == ()
    return found.servings


def guide(backend: str) -> list[Body]:
    """Give the objects of Kthena's guide as people write them: with limits, and few requests."""
    args = example_for(backend, "guide")
    return [
        with_limits_only(json.loads(json.dumps(one.body)))
        for one in compile_serving(args).manifests
    ]


def ordered(value: Any) -> Any:
    """Leave out what says nothing, and the order of keys; that of lists stays."""
    if isinstance(value, Mapping):
        made = {str(key): ordered(value[key]) for key in sorted(value, key=str)}
        return {key: item for key, item in made.items() if item not in (None, {}, [])}
    return [ordered(item) for item in value] if isinstance(value, list | tuple) else value


def specs(bodies: list[Body]) -> list[Any]:
    """Give the servings with the defaults of their CRDs, without metadata: no pod depends on it."""
    filled = [CONVERTERS[group_kind(b)].filled(b) for b in bodies if group_kind(b) in CONVERTERS]
    return [ordered({k: v for k, v in body.items() if k != "metadata"}) for body in filled]


@pytest.mark.parametrize("backend", TAKEN)
def test_an_object_with_limits_only_is_written_as_it_is(backend: str) -> None:
    bodies = guide(backend)
    (serving,) = adopted(bodies)
    assert (serving.losses, [n for n in serving.notes if n.startswith("adds")]) == ((), [])
    assert serving.args["fill_requests"] is False
    again = [dict(one.body) for one in serving.compiled.manifests]
    assert specs(json.loads(json.dumps(again))) == specs(bodies)
    told = [str(found) for found in serving.compiled.findings if found.rule == "requests-mirrored"]
    assert all("and fill_requests is false" in text for text in told)
    assert told


def test_an_object_with_requests_says_nothing_of_them() -> None:
    bodies = [
        dict(one.body) for one in compile_serving(example_for("kthena", "engine-native")).manifests
    ]
    (serving,) = adopted(json.loads(json.dumps(bodies)))
    assert "fill_requests" not in serving.args


def test_for_another_backend_requests_are_added() -> None:
    """A new object restarts nothing."""
    (serving,) = convert(guide("lws"), Changes(target="kthena")).servings
    assert "fill_requests" not in serving.args


def test_an_addition_is_a_loss_of_an_adoption() -> None:
    bodies = guide("matrixinfer")
    (made,) = (each for each in bodies if each["kind"] == "ModelInfer")
    template = made["spec"]["template"]["roles"][0]["entryTemplate"]
    del template["spec"]["schedulerName"]
    (serving,) = adopted(bodies)
    path = "spec.template.roles[0].entryTemplate.spec.schedulerName"
    assert [str(loss) for loss in serving.losses] == [
        f"{path}: is added, which changes the object and may restart its pods"
    ]
    (read,) = convert(bodies, Changes(target=SAME)).servings
    assert read.losses == ()


def without(value: Any, path: tuple[Any, ...]) -> Any:
    made = copy.deepcopy(value)
    holder = made
    for part in path[:-1]:
        holder = holder[part]
    del holder[path[-1]]
    return made


def subtrees(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from subtrees(item, (*path, key))


def objects() -> list[tuple[str, list[Body]]]:
    found = []
    for path in BASES:
        bodies = [each for each in yaml.safe_load_all(path.read_text()) if isinstance(each, dict)]
        if any("kind" in body and group_kind(body) in CONVERTERS for body in bodies):
            found.append((str(path.relative_to(ROOT)), bodies))
    return found


@pytest.mark.parametrize(
    ("name", "bodies"), objects(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_whatever_an_object_leaves_out_stays_left_out_or_is_a_loss(
    name: str, bodies: list[Body]
) -> None:
    """Each field is removed once: a field that somebody did not write is written by nobody."""
    tried = 0
    for at, body in enumerate(bodies):
        for path in subtrees(body) if group_kind(body) in CONVERTERS else ():
            changed_body = without(body, path)
            if "kind" not in changed_body or "apiVersion" not in changed_body:
                continue
            objects_now = [*bodies[:at], changed_body, *bodies[at + 1 :]]
            for serving in convert(objects_now, Changes(target=SAME, adopts=True)).servings:
                tried += 1
                again = [json.loads(json.dumps(one.body)) for one in serving.compiled.manifests]
                same = [b for b in again if group_kind(b) == group_kind(serving.source)]
                if serving.losses or serving.backend == "native":
                    continue
                assert len(same) == 1, (name, path)
                assert specs(same) == specs([dict(serving.source)]), (name, path)
    assert tried or name.endswith("model-infer-kthena.yaml"), "nothing can be written for it"


def test_a_foreign_set_whose_pods_would_get_our_labels_needs_consent() -> None:
    """And the variables of Kthena, which each engine of LWS gets."""
    body = yaml.safe_load((ROOT / "tests/systems/lws/bases/leaderworkerset.yaml").read_text())
    (serving,) = adopted([body])
    told = {str(loss) for loss in serving.losses}
    for at in ("leaderTemplate", "workerTemplate"):
        path = f"spec.leaderWorkerTemplate.{at}"
        assert any(text.startswith(f"{path}.") and "is added" in text for text in told), at
    assert convert([body], Changes(target=SAME)).servings[0].losses == ()


def test_a_list_in_another_order_is_a_loss() -> None:
    one = {"spec": {"env": [{"name": "A"}, {"name": "B"}], "args": ["x"]}}
    other = {"spec": {"env": [{"name": "B"}, {"name": "A"}], "args": ["x"]}}
    assert list(find_losses(one, other)) == []
    assert [str(loss) for loss in changed_by_adoption(one, other)] == [
        "spec.env: is in another order, which may restart its pods"
    ]
    assert list(changed_by_adoption(one, one)) == []


def test_the_guide_has_limits_without_requests() -> None:
    container = GUIDE["roles"][0]["entry_template"]["spec"]["containers"][0]
    assert set(container["resources"]["limits"]) - set(container["resources"]["requests"])
    args = changed(GUIDE, {"backend": "kthena", "fill_requests": False})
    (serving, *_) = compile_serving(args).manifests
    role = serving.body["spec"]["template"]["roles"][0]
    assert role["entryTemplate"]["spec"]["containers"][0]["resources"] == container["resources"]
