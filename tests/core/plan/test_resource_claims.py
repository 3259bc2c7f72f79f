"""GPUs and other devices by resource claims: what is written, and what is counted."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.compiler.compile import compile_group, compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.report import shape
from tests.support.for_each import for_each
from tests.support.specs import ENGINE_RAY, Args, changed

ROOT = Path(__file__).parents[3]
GPUS = {"name": "gpus", "device_class": "gpu.nvidia.com", "selectors": ["true"]}
CHANNEL = {"name": "channel", "template": "chat-channel", "gpus": False}
AT = "roles[0].resources.claims"


def serving(*claims: Args, **changes: Any) -> Args:
    return changed(ENGINE_RAY, {AT: [*claims], **changes})


def pods_of(bodies: list[Any]) -> list[Any]:
    return [body["spec"]["template"]["spec"] for body in bodies if body["kind"] == "StatefulSet"]


def written(args: Args) -> list[Any]:
    return [manifest.body for manifest in compile_serving(args).manifests]


def templates(args: Args) -> list[Any]:
    return [body for body in written(args) if body["kind"] == "ResourceClaimTemplate"]


def test_a_device_request_becomes_a_template_that_every_pod_names() -> None:
    bodies = written(serving(GPUS, CHANNEL))
    (made,) = [body for body in bodies if body["kind"] == "ResourceClaimTemplate"]
    name = made["metadata"]["name"]
    assert made["spec"]["spec"]["devices"]["requests"] == [
        {
            "name": "gpus",
            "exactly": {
                "deviceClassName": "gpu.nvidia.com",
                "count": 8,
                "selectors": [{"cel": {"expression": "true"}}],
            },
        }
    ]
    pods = pods_of(bodies)
    assert len(pods) > 1
    for pod in pods:
        assert pod["resourceClaims"] == [
            {"name": "gpus", "resourceClaimTemplateName": name},
            {"name": "channel", "resourceClaimTemplateName": "chat-channel"},
        ]
        resources = pod["containers"][0]["resources"]
        assert resources["claims"] == [{"name": "gpus"}, {"name": "channel"}]
        assert "nvidia.com/gpu" not in {**resources["limits"], **resources["requests"]}


def test_other_devices_leave_the_gpus_to_the_device_plugin() -> None:
    for pod in pods_of(written(serving(CHANNEL))):
        assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "8"


@for_each("claim", [GPUS, {"name": "gpus", "template": "h100s"}])
def test_gpus_of_claims_are_counted(claim: Args) -> None:
    plain, claimed = (compile_serving(args).plan for args in (ENGINE_RAY, serving(claim)))
    assert shape(claimed) == shape(plain)


@for_each("claim", [GPUS, {"name": "gpus", "template": "h100s"}])
def test_sizes_that_do_not_fit_claims_are_refused(claim: Args) -> None:
    with pytest.raises(SpecError, match=r"2 pods × 4 GPUs hold 8.*world-size-equals-gpus"):
        compile_serving(serving(claim, **{"roles[0].resources.gpus_per_pod": 4}))


def test_the_name_of_a_template_changes_with_its_content_and_restarts_the_pods() -> None:
    (before,), (same,) = templates(serving(GPUS)), templates(serving(GPUS))
    other = serving({**GPUS, "selectors": ["false"]})
    (after,) = templates(other)
    assert before == same
    assert before["metadata"]["name"] != after["metadata"]["name"]
    plans = [compile_serving(args).plan for args in (serving(GPUS), other)]
    assert plans[0].revision != plans[1].revision


def test_standalone_groups_of_one_serving_have_their_own_templates() -> None:
    fields = {k: v for k, v in serving(GPUS).items() if k in {"name", "namespace", "roles"}}
    made = [compile_group({**fields, "group": number}).manifests for number in (0, 1)]
    names = [m.name for group in made for m in group if m.kind == "ResourceClaimTemplate"]
    assert len({*names}) == 2


def test_written_objects_pass_together() -> None:
    bodies = {str(index): body for index, body in enumerate(written(serving(GPUS)))}
    found = check_objects_together(bodies)
    assert [str(finding) for finding in found if "claim" in str(finding)] == []


@for_each("backend", ["booster", "kaito"])
def test_a_backend_without_claims_refuses_them(backend: str) -> None:
    with pytest.raises(SpecError) as error:
        compile_serving(serving(GPUS, backend=backend))
    assert f"{AT}" in {finding.path for finding in error.value.findings}


def test_the_serving_of_the_page_is_written_by_each_backend_with_claims() -> None:
    page = (ROOT / "docs" / "resource-claims.md").read_text(encoding="utf-8")
    args = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    for backend in ("native", "kthena", "lws", "matrixinfer"):
        assert templates({**args, "backend": backend}), backend
