"""Pod templates have the types of fields that Kubernetes gives them, wherever they stand."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.systems import all_systems
from tests.support.for_each import for_each
from tests.support.specs import changed

Args = dict[str, Any]
TEMPLATE: Args = {
    "metadata": {"labels": {"app": "chat"}, "annotations": {"a": ""}},
    "spec": {
        "containers": [
            {
                "name": "engine",
                "image": "vllm/vllm-openai:v0.33.0",
                "args": ["-tp", "8"],
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
                "ports": [{"containerPort": 8000}, {"containerPort": 8000}],
                "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "64Gi", "cpu": 0.5}},
                "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
                "securityContext": {"privileged": False, "runAsUser": 0},
            }
        ],
        "nodeSelector": {"pool": "gpus"},
        "terminationGracePeriodSeconds": 30.0,
        "hostAliases": None,
    },
}
KINDS = [kind for system in all_systems() for kind in system.kinds]


def wrapped(place: str, template: object) -> Args:
    """Make an object that holds a template at a place."""
    held: Any = template
    for key in reversed(place.split(".") if place else []):
        name = key.removesuffix("[]")
        held = {name: [held] if name != key else held}
    return {**held} if isinstance(held, dict) else {}


def told(kind: tuple[str, str], place: str, template: object) -> list[str]:
    group, name = kind
    body = {"apiVersion": f"{group}/v1".lstrip("/"), "kind": name, **wrapped(place, template)}
    return [str(f) for f in check_manifest(body, "F") if f.rule == "pod-schema"]


@for_each(
    ("kind", "place"), [(kind.group_kind, place) for kind in KINDS for place in kind.templates]
)
def test_a_template_is_checked_wherever_it_stands(kind: tuple[str, str], place: str) -> None:
    assert told(kind, place, TEMPLATE) == []
    wrong = changed(TEMPLATE, {"spec.containers[0].env[0].value": 8})
    at = f"F.{place.replace('[]', '[0]')}".rstrip(".")
    (line,) = told(kind, place, wrong)
    assert line == (
        f"{at}.spec.containers[0].env[0].value: is 8, but must be a string. Write it in quotes. "
        "[pod-schema]"
    )


def test_every_kind_that_holds_templates_is_checked() -> None:
    """What holds the templates of its pods in another form says why they are not checked here.

    A ModelServing's have the shape that its CRD gives them: kthena-schema.
    """
    held = [kind for kind in KINDS if kind.pods is not None and not kind.templates]
    assert MODEL_SERVING in {kind.group_kind for kind in held}
    assert [kind.name for kind in held if not kind.without.get("templates")] == []


@pytest.mark.parametrize(
    ("path", "value", "seen"),
    [
        ("spec", 5, "is 5, but must be a map"),
        ("spec.containers", {}, "is a map, but must be a list"),
        ("spec.containers", None, "is missing"),
        ("spec.containers[0].args[1]", 8, "is 8, but must be a string. Write it in quotes"),
        ("spec.containers[0].ports[0].containerPort", "8000", "is '8000', but must be a whole"),
        ("spec.nodeSelector.pool", True, "is true, but must be a string"),
        ("metadata.labels.app", 7, "is 7, but must be a string. Write it in quotes"),
        ("spec.containers[0].readinessProbe.httpGet.port", 80.5, "is 80.5, but must be"),
        ("spec.containers[0].resources.limits.memory", "64 Gi", "which is not a quantity"),
    ],
)
def test_a_value_of_another_type_is_refused(path: str, value: object, seen: str) -> None:
    (line,) = told(("apps", "Deployment"), "spec.template", changed(TEMPLATE, {path: value}))
    assert line.startswith(f"F.spec.template.{path}: ")
    assert seen in line


@pytest.mark.parametrize("odd", [None, 5, "x", [], [5], {}, {"tasks": 5}, {"tasks": [None, 5]}])
def test_an_object_without_templates_is_not_spoken_of(odd: object) -> None:
    for kind, version in (("Job", "batch.volcano.sh/v1alpha1"), ("Job", "batch/v1")):
        found = check_manifest({"apiVersion": version, "kind": kind, "spec": odd})
        assert [f for f in found if f.rule == "pod-schema"] == []


def of(kind: str, template: dict[str, Any], **annotations: str) -> list[tuple[str, Level]]:
    api = {"Job": "batch/v1", "Deployment": "apps/v1"}[kind]
    metadata = {"name": "a", "annotations": annotations}
    body = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {"template": template}}
    found = check_manifest(body)
    return [(each.path, each.level) for each in found if each.rule == "pod-values"]


def test_equal_templates_are_checked_for_the_kind_and_the_annotations_of_each_object() -> None:
    """Equal templates are remembered, and the findings depend on what is around them, too."""
    container = {"name": "a", "image": "a:1"}
    ends = {"spec": {"restartPolicy": "OnFailure", "containers": [container]}}
    assert of("Job", ends) == []
    assert of("Deployment", ends) == [("spec.template.spec.restartPolicy", Level.MANDATORY)]
    mounts = {**container, "volumeMounts": [{"name": "secrets", "mountPath": "/vault"}]}
    lacks = {"spec": {"containers": [mounts]}}
    at = "spec.template.spec.containers[0].volumeMounts[0].name"
    assert of("Deployment", lacks) == [(at, Level.MANDATORY)]
    injected = {"vault.hashicorp.com/agent-inject": "true"}
    assert of("Deployment", lacks, **injected) == [(at, Level.ADVISORY)]


NULL: dict[str, object] = {"spec.containers[0].args": ["serve", None]}


def test_a_null_in_a_list_of_texts_is_an_empty_text_to_kubernetes_and_wrong_to_a_crd() -> None:
    """Seen at an API server of Kubernetes 1.34: a Job with `args: [null]` is created."""
    assert told(("apps", "Deployment"), "spec.template", changed(TEMPLATE, NULL)) == []
    mount = {"spec.containers[0].volumeMounts": [None]}
    (line,) = told(("apps", "Deployment"), "spec.template", changed(TEMPLATE, mount))
    assert "volumeMounts[0]: is null, but must be a map" in line
    leader = "spec.leaderWorkerTemplate.leaderTemplate"
    body = wrapped(leader, changed(TEMPLATE, NULL))
    of_crd = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", **body}
    found = [each for each in check_manifest(of_crd) if each.rule == "crd-schema"]
    assert f"{leader}.spec.containers[0].args[1]" in {each.path for each in found}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.terminationGracePeriodSeconds", "GRACE_SECONDS"),
        ("spec.hostNetwork", "USE_HOST_NETWORK"),
        ("spec.containers[0].resources.limits.cpu", "CPU_LIMIT"),
        ("spec.containers[0].resources.limits", {"GPU_RESOURCE": 1}),
    ],
)
def test_a_word_in_capitals_where_none_can_be_is_to_be_filled_in(path: str, value: object) -> None:
    """A script replaces such words: `sed s/GRACE_SECONDS/60/`."""
    template = {"spec": {**changed(TEMPLATE, {path: value})["spec"], "restartPolicy": "Never"}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
    found = check_manifest({**body, "spec": {"template": template}})
    rules = {"crd-schema", "pod-schema", "pod-values"}
    wrong = [str(f) for f in found if f.level is Level.MANDATORY and f.rule in rules]
    assert wrong == []
