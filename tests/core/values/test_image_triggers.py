"""Images that OpenShift's triggers set."""

import json

import pytest

from kthena_components.core.values.images import mark_triggered
from kthena_components.core.values.unknown import Blank

BY_NAME = 'spec.template.spec.containers[?(@.name=="engine")].image'
BY_NUMBER = "spec.template.spec.containers[0].image"


def workload(*fields: str) -> dict[str, object]:
    triggers = [{"from": {"kind": "ImageStreamTag", "name": "a:1"}, "fieldPath": f} for f in fields]
    containers = [{"name": "engine", "image": " "}, {"name": "proxy", "image": "envoy:1"}]
    return {
        "metadata": {"annotations": {"image.openshift.io/triggers": json.dumps(triggers)}},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def images(body: dict[str, object]) -> list[type]:
    containers = mark_triggered(body)["spec"]["template"]["spec"]["containers"]
    return [type(container["image"]) for container in containers]


@pytest.mark.parametrize("field", [BY_NAME, BY_NUMBER])
def test_a_triggered_image_is_unknown(field: str) -> None:
    assert images(workload(field)) == [Blank, str]


@pytest.mark.parametrize("field", ["", "spec.template.spec.initContainers[0].image", "containers"])
def test_other_images_are_known(field: str) -> None:
    assert images(workload(field)) == [str, str]


def test_an_object_without_triggers_stays_the_same() -> None:
    body = {"metadata": {"annotations": None}, "spec": {"containers": 8}}
    assert mark_triggered(body) is body


@pytest.mark.parametrize("containers", [8, ["engine", None], [{}], [{"name": 8}], None])
def test_nothing_raises(containers: object) -> None:
    body = workload(BY_NAME, BY_NUMBER) | {"spec": {"containers": containers}}
    assert mark_triggered(body)
