"""Pod templates as args objects of pulumi-kubernetes."""

from typing import Any

import pulumi
import pytest
from pulumi_kubernetes.apps.v1 import DeploymentSpecArgs
from pulumi_kubernetes.core.v1 import (
    ContainerArgs,
    ContainerPortArgs,
    EnvVarArgs,
    PodSpecArgs,
    PodSpecPatchArgs,
    PodTemplateSpecArgs,
    PodTemplateSpecPatchArgs,
    ResourceRequirementsArgs,
    TolerationPatchArgs,
)
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

from tests.resources.build import late, role, serving
from tests.support.recorder import Recorded, attempt, record, secrets_in
from tests.support.specs import ENGINE_RAY, changed

PLAIN: dict[str, Any] = {
    "metadata": {"annotations": {"team": "search"}},
    "spec": {
        "containers": [
            {
                "name": "app",
                "image": "nginx:1.29",
                "imagePullPolicy": "Always",
                "env": [{"name": "A", "value": "a"}],
                "ports": [{"containerPort": 8080}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        ],
        "nodeSelector": {"pool": "gpu"},
        "terminationGracePeriodSeconds": 60,
    },
}
"""The same as `typed`, in the names of Kubernetes."""


def typed(value: pulumi.Input[str] = "a") -> PodTemplateSpecArgs:
    container = ContainerArgs(
        name="app",
        image="nginx:1.29",
        image_pull_policy="Always",
        env=[EnvVarArgs(name="A", value=value)],
        ports=[ContainerPortArgs(container_port=8080)],
        resources=ResourceRequirementsArgs(limits={"nvidia.com/gpu": "1"}),
    )
    return PodTemplateSpecArgs(
        metadata=ObjectMetaArgs(annotations={"team": "search"}),
        spec=PodSpecArgs(
            containers=[container],
            node_selector={"pool": "gpu"},
            termination_grace_period_seconds=60,
        ),
    )


def chat(template: object, **more: Any) -> Recorded:
    return attempt(
        lambda: serving({"roles": [{"name": "app", "entry_template": template}], **more})
    )


def refusal(seen: Recorded) -> list[str]:
    assert isinstance(seen.error, pulumi.RunError)
    return str(seen.error).splitlines()[1:]


def requests(seen: Recorded) -> list[tuple[str, Any]]:
    assert seen.error is None
    return [(each.urn, each.props) for each in seen.resources]


def test_an_args_object_makes_what_the_map_makes() -> None:
    assert requests(chat(typed())) == requests(chat(PLAIN))


def test_objects_may_stand_in_a_map_and_maps_in_objects() -> None:
    pod = typed().spec
    mixed = {"metadata": ObjectMetaArgs(annotations={"team": "search"}), "spec": pod}
    assert requests(chat(mixed)) == requests(chat(PLAIN))
    containers: Any = PLAIN["spec"]["containers"]
    spec = PodSpecArgs(containers=containers, node_selector={"pool": "gpu"},
                       termination_grace_period_seconds=60)  # fmt: skip
    assert requests(chat({**PLAIN, "spec": spec})) == requests(chat(PLAIN))


def test_a_worker_and_an_overlay_may_be_objects_too() -> None:
    roles = [{"name": "app", "worker_replicas": 1,
              "entry_template": typed(), "worker_template": typed()}]  # fmt: skip
    plain = [{**roles[0], "entry_template": PLAIN, "worker_template": PLAIN}]
    assert requests(record(lambda: serving({"roles": roles}))) == requests(
        record(lambda: serving({"roles": plain}))
    )
    toleration = TolerationPatchArgs(key="nvidia.com/gpu", operator="Exists")
    overlay = PodTemplateSpecPatchArgs(spec=PodSpecPatchArgs(tolerations=[toleration]))
    seen = record(lambda: serving(changed(ENGINE_RAY, {"roles[0].overlay": overlay})))
    for each in seen.of_kind("StatefulSet"):
        pod = each.props["spec"]["template"]["spec"]
        assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
        assert len(pod["containers"]) == 1


def test_a_role_takes_them_too() -> None:
    def pods(template: object) -> Recorded:
        return record(lambda: role({"serving": "chat", "entry_template": template}))

    assert requests(pods(typed())) == requests(pods(PLAIN))


def test_outputs_inside_arrive_late_and_secrets_stay_secret() -> None:
    seen = attempt(lambda: serving(with_template(typed(late("a")))))
    (kept,) = seen.of_kind("StatefulSet")
    (container,) = kept.props["spec"]["template"]["spec"]["containers"]
    assert container["env"][0] == {"name": "A", "value": "a"}
    hidden = attempt(lambda: serving(with_template(typed(pulumi.Output.secret("hush")))))
    (kept,) = hidden.of_kind("StatefulSet")
    assert list(secrets_in(kept.props)) == ["hush"]


def with_template(template: object) -> dict[str, Any]:
    return {"roles": [{"name": "app", "entry_template": template}]}


def test_objects_are_left_as_they_were() -> None:
    template = typed()
    before = template.spec
    chat(template)
    assert template.spec is before
    assert isinstance(before, PodSpecArgs)


@pytest.mark.parametrize("field", ["entry_template", "worker_template", "overlay"])
def test_another_kind_of_object_is_refused_with_its_path(field: str) -> None:
    wrong = DeploymentSpecArgs(selector=LabelSelectorArgs(), template=typed())
    seen = attempt(lambda: serving({"roles": [{"name": "app", field: wrong}]}))
    (found,) = refusal(seen)
    assert found == (
        f"  roles[0].{field}: is of the type DeploymentSpecArgs, but must be a pod template. "
        "Write a PodTemplateSpecArgs, or its fields as a map, with the names that Kubernetes "
        "uses. [type]"
    )


def test_an_object_elsewhere_is_refused_with_its_path() -> None:
    seen = attempt(
        lambda: serving({"roles": [{"name": "app", "resources": PodSpecArgs(containers=[])}]})
    )
    (found,) = refusal(seen)
    assert found == (
        "  roles[0].resources: is of the type PodSpecArgs, but must be plain data: a map, a list, "
        "text or a number. Write its fields as a map. [type]"
    )


def test_a_wrong_field_inside_is_refused_with_its_path() -> None:
    wrong: Any = {"name": "app", "imagge": ""}
    (found,) = refusal(chat(PodTemplateSpecArgs(spec=PodSpecArgs(containers=[wrong]))))
    assert found.startswith("  roles[0].entry_template.spec.containers[0].imagge: ")
