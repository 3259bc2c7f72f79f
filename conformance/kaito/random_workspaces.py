"""Random Workspaces and InferenceSets of KAITO: those of the backend, and wrong changes to them."""

import copy
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from conformance.kaito.cluster import CREATED, EXISTING, NAMESPACE, SORTS
from conformance.validation import random_damage
from conformance.validation.cases import Kind
from conformance.validation.deliberate_differences import KAITO
from conformance.volcano import invalid_objects
from kthena_components.compiler.compile import compile_serving
from kthena_components.systems.kaito.estimator import SHORT_NAMES
from kthena_components.systems.kaito.view import INFERENCE_SET, OWN_LABELS, WORKSPACE
from tests.support.strategies import servings

Body = dict[str, Any]
Change = Callable[[random.Random, Body], None]
_SERVINGS = 150
"""Number of servings whose objects are changed."""
_AZURE = "Standard_"
_OTHER_CLOUD = "Standard_ND96isr_H100_v5"
_PRESETS = (
    "phi-5", "", None, "falcon-7b", "/x", "x/", "/", "a b", "PHI-4", "Microsoft/Phi-4", 5,
    "Qwen/Qwen3-32B", *SHORT_NAMES,
)  # fmt: skip
_TYPES = ("", "Standard_NC24ads_A100_v4", "Standard_NX99", "standard_d4", "p5.48xlarge", "x", None)
_COUNTS = (0, 1, 2, 3, 100, -1, "2", 1.5, None, 2**31)
_STRENGTHS = ("1.0", "0", "1.5", "-1", "a", "", 1, None)


def _coin(draw: random.Random, share: float = 0.5) -> bool:
    return draw.random() < share


@cache
def written() -> tuple[list[Body], list[Body]]:
    """Return what the backend writes for random servings: KAITO's objects, and the ConfigMaps."""
    found: dict[str, Body] = {}
    configs: dict[str, Body] = {}

    @settings(
        max_examples=_SERVINGS,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(servings("kaito"))
    def collect(args: dict[str, Any]) -> None:
        for made in compile_serving({**args, "namespace": NAMESPACE}).manifests:
            body = made.body
            if body["kind"] == "ConfigMap":
                configs[body["metadata"]["name"]] = dict(body)
            elif body["kind"] in {WORKSPACE, INFERENCE_SET}:
                found[repr(body)] = dict(body)

    collect()
    return list(found.values()), list(configs.values())


def draw_object(kind: str, provisioner: str, draw: random.Random) -> Body:
    """Return an object that KAITO accepts, for nodes that exist or that it creates."""
    body = copy.deepcopy(draw.choice(written()[0]))
    if kind != body["kind"]:
        (body,) = made_workspaces(body) if kind == WORKSPACE else (_as_set(body),)
    resource = _resource(body)
    stated = resource.get("instanceType")
    if provisioner == CREATED and not str(stated).startswith(_AZURE):
        resource["instanceType"] = _OTHER_CLOUD
    elif provisioner == EXISTING and stated:
        resource["instanceType"] = ""
        _selector(body)["matchLabels"] = dict(draw.choice(SORTS).labels)
    return body


def made_workspaces(body: Body) -> Iterator[Body]:
    """Return the Workspace that the controller would create for an InferenceSet.

    Source: kaito-project/kaito v0.11.0 pkg/inferenceset/inferenceset_controller.go.
    """
    spec, metadata = body["spec"], body["metadata"]
    template = spec.get("template") or {}
    own = template.get("metadata") or {}
    # The webhook checks the InferenceSet's name itself.
    named = {"name": f"{metadata.get('name') or 'a'}-abcde", "namespace": NAMESPACE}
    stated = own if isinstance(own, dict) else {}
    kept = {key: stated[key] for key in ("labels", "annotations") if key in stated}
    resource = {
        "instanceType": (template.get("resource") or {}).get("instanceType") or "",
        "labelSelector": spec.get("labelSelector"),
    }
    yield {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": WORKSPACE,
        "metadata": {**kept, **named},
        "resource": resource,
        "inference": template.get("inference") or {},
    }


def _as_set(body: Body) -> Body:
    """Return the InferenceSet of a Workspace."""
    resource = body["resource"]
    template = {
        "resource": {"instanceType": resource.get("instanceType", "")},
        "inference": body["inference"],
    }
    spec = {"replicas": 1, "labelSelector": resource["labelSelector"], "template": template}
    kept = {key: body[key] for key in ("apiVersion", "metadata")}
    return {**kept, "kind": INFERENCE_SET, "spec": spec}


def _holder(body: Body) -> Body:
    """Return the map with resource and inference."""
    found: Body = body if body["kind"] == WORKSPACE else body["spec"]["template"]
    return found


def _resource(body: Body) -> Body:
    found: Body = _holder(body)["resource"]
    return found


def _selector(body: Body) -> Body:
    at = _resource(body) if body["kind"] == WORKSPACE else body["spec"]
    found: Body = at["labelSelector"]
    return found


def _inference(body: Body) -> Body:
    found: Body = _holder(body)["inference"]
    return found


def _annotations(body: Body) -> Body:
    at = body if body["kind"] == WORKSPACE else _holder(body)
    found: Body = at.setdefault("metadata", {}).setdefault("annotations", {})
    return found


def _preset(draw: random.Random, body: Body) -> None:
    inference = _inference(body)
    inference.pop("template", None)
    inference["preset"] = {"name": draw.choice(_PRESETS)}
    if _coin(draw, 0.2):
        inference["preset"]["presetOptions"] = {"modelAccessSecret": draw.choice(("t", "", None))}


def _ways(draw: random.Random, body: Body) -> None:
    """State both ways to infer, or none."""
    inference, plain = _inference(body), {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    match draw.randrange(4):
        case 0:
            inference.pop("preset", None)
            inference.pop("template", None)
        case 1:
            inference |= {"preset": {"name": "phi-4"}, "template": plain}
        case 2:
            del _holder(body)["inference"]
        case _:
            inference.pop("preset", None)
            inference["template"] = draw.choice((plain, {}, None))


def _types(draw: random.Random, body: Body) -> None:
    _resource(body)["instanceType"] = draw.choice(_TYPES)


def _counts(draw: random.Random, body: Body) -> None:
    holder, key = (_resource(body), "count") if body["kind"] == WORKSPACE else (
        body["spec"], draw.choice(("replicas", "nodeCountLimit")))  # fmt: skip
    holder[key] = draw.choice(_COUNTS)


def _labels(draw: random.Random, body: Body) -> None:
    at = _resource(body) if body["kind"] == WORKSPACE else body["spec"]
    own = {draw.choice(sorted(OWN_LABELS)): "a"}
    term = {"key": "team", "operator": draw.choice(("In", "Exists", "in", "")),
            "values": draw.choice((["chat"], []))}  # fmt: skip
    at["labelSelector"] = draw.choice((
        {"matchLabels": own},
        {"matchLabels": {**own, **SORTS[0].labels}},
        {"matchLabels": {**SORTS[0].labels, "a b": "c"}},
        {"matchLabels": {}}, {}, None,
        {"matchLabels": SORTS[0].labels, "matchExpressions": [term]},
    ))  # fmt: skip


def _adapters(draw: random.Random, body: Body) -> None:
    count = draw.choice((1, 2, 10, 11))
    made: list[Any] = [{"source": {"name": f"a{n}", "image": "org/a:1"}} for n in range(count)]
    match draw.randrange(6):
        case 0:
            made[0]["source"]["name"] = made[-1]["source"]["name"]
        case 1:
            made[0]["strength"] = draw.choice(_STRENGTHS)
        case 2:
            del made[0]["source"]
        case 3:
            made[0]["source"]["name"] = draw.choice(("", None, "A b"))
        case _:
            pass
    _inference(body)["adapters"] = made


def _runtime(draw: random.Random, body: Body) -> None:
    words = ("transformers", "transformers", "vllm", "tgi", "")
    _annotations(body)["kaito.sh/runtime"] = draw.choice(words)
    if _coin(draw):
        _preset(draw, body)


def _modes(draw: random.Random, body: Body) -> None:
    key, words = draw.choice((
        ("kaito.sh/performance-mode", ("balanced", "throughput", "fast", "Balanced", "")),
        ("kaito.sh/node-image-family", ("ubuntu", "AzureLinux", " ubuntu ", "windows", "")),
        ("kaito.sh/bypass-resource-checks", ("true", "")),
    ))  # fmt: skip
    _annotations(body)[key] = draw.choice(words)


def _damage_template(draw: random.Random, body: Body) -> None:
    """Set a field inside the pod template to an odd value, or remove it."""
    try:
        random_damage.damage_spec(draw, _inference(body)["template"]["spec"])
    except (AttributeError, LookupError, TypeError):
        return  # a preset, or another change has already removed it


def _safely(change: Change) -> Change:
    """Leave an object alone if another change has removed what this one changes."""

    def changed(draw: random.Random, body: Body) -> None:
        try:
            change(draw, body)
        except (AttributeError, LookupError, TypeError):
            return

    return changed


CHANGES: tuple[Change, ...] = (
    invalid_objects.name, invalid_objects.labels, *map(_safely, (
        _preset, _preset, _ways, _types, _counts, _labels, _labels, _adapters, _adapters, _runtime,
        _runtime, _modes, _modes)),
)  # fmt: skip
_PATH = f"/apis/kaito.sh/v1beta1/namespaces/{NAMESPACE}"


def kinds(provisioner: str, number: int) -> tuple[Kind, ...]:
    """Return both kinds, for one provisioner of nodes."""
    workspaces = f"{_PATH}/workspaces"
    either: tuple[tuple[str, str, Any], ...] = (
        (WORKSPACE, workspaces, None),
        (INFERENCE_SET, f"{_PATH}/inferencesets", (workspaces, made_workspaces)),
    )
    return tuple(
        Kind(
            name=f"{name} ({provisioner})",
            path=path,
            number=number,
            draw=partial(draw_object, name, provisioner),
            changes=CHANGES,
            anywhere=(random_damage.damage, _damage_template),
            of=("kaito.sh", name),
            parts=parts,
            differences=KAITO,
        )
        for name, path, parts in either
    )
