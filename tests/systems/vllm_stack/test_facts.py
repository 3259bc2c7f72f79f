"""Releases of the chart vllm-stack, by whatever tool."""

from typing import Any

import pytest
import yaml

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Level
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.vllm_stack.view import values_of
from tests.policies.objects import advice, refusals, silent
from tests.rules.cases import documents, judge
from tests.support.peers import LATE
from tests.support.specs import REMOVED, changed

RELEASE = "kubernetes:helm.sh/v3:Release"
BODY = documents("release")[0]
VALUES = BODY["values"]
MODEL = "values.servingEngineSpec.modelSpec[0]"
ARGO_MODEL = "spec.source.helm.valuesObject.servingEngineSpec.modelSpec[0]"
Changes = dict[str, Any]
FLUX = {
    "apiVersion": "helm.toolkit.fluxcd.io/v2",
    "kind": "HelmRelease",
    "metadata": {"name": "chat"},
    "spec": {"chart": {"spec": {"chart": "vllm-stack"}}, "values": VALUES},
}
K3S = {
    "apiVersion": "helm.cattle.io/v1",
    "kind": "HelmChart",
    "metadata": {"name": "chat"},
    "spec": {"chart": "vllm-stack", "repo": "https://vllm-project.github.io/production-stack"},
}
ARGO = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "chat"},
    "spec": {"source": {"chart": "vllm-stack", "helm": {"valuesObject": VALUES}}},
}


def engine(changes: Changes | None = None) -> EngineFacts:
    facts = read_manifest(changed(BODY, changes))
    assert facts is not None
    (found,) = facts.engines
    return found


def refused(changes: Changes) -> list[str]:
    return [str(f) for f in judge("release", changes) if f.level is Level.MANDATORY]


def test_a_model_on_ray_is_a_head_and_its_workers() -> None:
    found = engine()
    assert (found.name, found.pods, found.replicas) == ("chat", 2, 1)
    assert (found.entry.gpus, found.worker and found.worker.gpus) == (2, 2)
    assert judge("release", {}) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {f"{MODEL}.replicaCount": 2},
            (
                f"{MODEL}.vllmConfig: engine 'chat' starts tensor 2 × pipeline 2 = 4 ranks, but "
                "its 3 "
                "pods × 2 GPUs hold 6. Set pipeline to 3, or give the engine 2 pods. "
                "[world-size-equals-gpus]"
            ),
        ),
        (
            {f"{MODEL}.raySpec.headNode.requestGPU": 4},
            (
                f"{MODEL}.requestGPU: engine 'chat' gives its entry pod 4 GPUs and each worker "
                "2, and an engine distributes its ranks evenly. Write 2 in both. "
                "[leader-worker-same-gpus]"
            ),
        ),
        (
            {f"{MODEL}.vllmConfig.tensorParallelSize": 4},
            (
                f"{MODEL}.vllmConfig: engine 'chat' starts tensor 4 × pipeline 2 = 8 ranks, but "
                "its 2 "
                "pods × 2 GPUs hold 4. Set pipeline to 1, or set tensor to 2, or give the engine 4 "
                "pods, or give each pod 4 GPUs. [world-size-equals-gpus]"
            ),
        ),
    ],
)
def test_each_of_the_three_equations_is_held(changes: Changes, said: str) -> None:
    assert said in refused(changes)


def test_without_ray_a_model_is_a_deployment() -> None:
    plain = {f"{MODEL}.raySpec": REMOVED, f"{MODEL}.vllmConfig": {"tensorParallelSize": 2}}
    assert (engine(plain).pods, engine(plain).replicas, refused(plain)) == (1, 1, [])
    extra = {**plain, f"{MODEL}.vllmConfig.extraArgs": ["--pipeline-parallel-size", "2"]}
    (text,) = refused(extra)
    assert "starts tensor 2 × pipeline 2 = 4 ranks, but its pod has 2 GPUs" in text


def test_resources_win_over_what_is_requested() -> None:
    both = {"limits": {"nvidia.com/gpu": "8"}}
    found = engine({f"{MODEL}.resources": both, f"{MODEL}.raySpec.headNode.resources": both})
    assert (found.entry.gpus, found.worker and found.worker.gpus) == (8, 8)
    assert found.entry.gpus_path == f"{MODEL}.raySpec.headNode.resources"


@pytest.mark.parametrize("gpus", ["2", 2.0])
def test_gpus_may_be_texts(gpus: object) -> None:
    changes = {f"{MODEL}.requestGPU": gpus, f"{MODEL}.raySpec.headNode.requestGPU": gpus}
    assert refused(changes) == []


def test_a_large_number_is_written_with_an_exponent_by_helm() -> None:
    (text,) = refused({f"{MODEL}.vllmConfig.maxModelLen": 1048576})
    assert "1.048576e+06" in text
    (other,) = refused({f"{MODEL}.vllmConfig.maxModelLen": "1048576"})
    assert "[context-within-model]" in other


def test_a_token_in_the_values_is_found_and_not_repeated() -> None:
    token = f"hf_{'a1' * 17}"
    (text,) = refused({f"{MODEL}.hf_token": token})
    assert text.startswith(f"{MODEL}.hf_token: ")
    assert token not in text
    assert refused({f"{MODEL}.hf_token": "<YOUR HF TOKEN>"}) == []


@pytest.mark.parametrize(
    "chart",
    ["vllm/vllm-stack", "oci://ghcr.io/x/vllm-stack", "./vllm-stack/", "x/vllm-stack-0.1.12.tgz"],
)
def test_a_chart_is_known_by_its_last_name(chart: str) -> None:
    assert engine({"chart": chart}).pods == 2


@pytest.mark.parametrize("chart", ["vllm-stack-router", "redis", LATE, None, 3])
def test_other_charts_are_not_read(chart: object) -> None:
    (told,) = judge("release", {"chart": chart, f"{MODEL}.replicaCount": 9})
    assert (told.rule, told.level) == ("kind-read", Level.UNKNOWN)


def test_the_pack_checks_pulumis_release() -> None:
    props = {key: BODY[key] for key in ("chart", "values")}
    assert silent(RELEASE, props)
    wrong = changed(props, {f"{MODEL}.replicaCount": 2})
    assert refusals(RELEASE, wrong).startswith(f"{MODEL}.vllmConfig: engine 'chat' starts")
    loose = changed(props, {f"{MODEL}.raySpec": REMOVED})
    assert "[vllm-stack-ignored]" in advice(RELEASE, loose)


@pytest.mark.parametrize(
    ("body", "at"),
    [
        (FLUX, "spec.values"),
        (
            changed(FLUX, {"spec": {"chartRef": {"name": "vllm-stack"}, "values": VALUES}}),
            "spec.values",
        ),
        (ARGO, "spec.source.helm.valuesObject"),
        (
            changed(ARGO, {"spec.source.helm": {"values": yaml.safe_dump(VALUES)}}),
            "spec.source.helm.values",
        ),
        (
            {**ARGO, "spec": {"sources": [{"repoURL": "x"}, ARGO["spec"]["source"]]}},  # type: ignore[index]
            "spec.sources[1].helm.valuesObject",
        ),
        (
            changed(
                ARGO,
                {
                    "spec.source.chart": REMOVED,
                    "spec.source.repoURL": "https://github.com/vllm-project/production-stack.git",
                    "spec.source.path": "helm",
                },
            ),
            "spec.source.helm.valuesObject",
        ),
        (changed(K3S, {"spec.valuesContent": yaml.safe_dump(VALUES)}), "spec.valuesContent"),
        (changed(K3S, {"spec.values": VALUES}), "spec.values"),
        (
            changed(K3S, {"spec.values": VALUES, "spec.valuesContent": "servingEngineSpec: {}"}),
            "spec.values",
        ),
    ],
)
def test_other_tools_hold_the_values_elsewhere(body: dict[str, Any], at: str) -> None:
    facts = read_manifest(body)
    assert facts is not None
    (found,) = facts.engines
    assert found.path == f"{at}.servingEngineSpec.modelSpec[0]"
    assert check_manifest(body) == []


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"spec.source.helm": {"values": "a: *b"}}, "values uses aliases"),
        ({"spec.source.helm": {"values": LATE}}, "values is not known yet"),
        (
            {"spec.source.helm.parameters": [{"name": LATE, "value": "2"}]},
            "the value is known only after the deployment",
        ),
        (
            {
                "spec.source.helm": {
                    "valueFiles": ["x.yaml"],
                    "parameters": [
                        {"name": "servingEngineSpec.modelSpec[0].requestGPU", "value": "8"}
                    ],
                }
            },
            "the models may be in other values",
        ),
        ({"spec.source.helm": {"valueFiles": ["x.yaml"]}}, "the models may be in other values"),
    ],
)
def test_what_is_not_here_is_said(changes: Changes, because: str) -> None:
    (found,) = check_manifest(changed(ARGO, changes))
    assert found.level is Level.UNKNOWN
    assert because in found.seen


ENTRY = "servingEngineSpec.modelSpec[0]"
SET = "spec.source.helm.parameters"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            [(f"{ENTRY}.requestGPU", "8"), (f"{ENTRY}.raySpec.headNode.requestGPU", "8")],
            (
                f"{ARGO_MODEL}.vllmConfig: engine 'chat' starts tensor 2 × pipeline 2 = 4 ranks, "
                "but its 2 pods × 8 GPUs hold 16."
            ),
        ),
        (
            [(f"{ENTRY}.requestGPU", "4")],
            f"{SET}[0].value: engine 'chat' gives its entry pod 2 GPUs and each worker 4",
        ),
        (
            [("unrelated", "1"), (f"{ENTRY}.vllmConfig.tensorParallelSize", "4")],
            f"{SET}[1].value: engine 'chat' starts tensor 4 × pipeline 2 = 8 ranks",
        ),
        # The last of several wins.
        (
            [(f"{ENTRY}.replicaCount", "1"), (f"{ENTRY}.replicaCount", "3")],
            "but its 4 pods × 2 GPUs hold 8.",
        ),
    ],
)
def test_parameters_override_the_values(parameters: list[tuple[str, str]], said: str) -> None:
    given = [{"name": name, "value": value} for name, value in parameters]
    texts = [str(f) for f in check_manifest(changed(ARGO, {SET: given}))]
    assert any(said in text for text in texts), texts


@pytest.mark.parametrize("forced", [False, True])
def test_parameters_mend_the_values_too(forced: bool) -> None:
    wrong = changed(ARGO, {f"{ARGO_MODEL}.requestGPU": 4})
    assert check_manifest(wrong)
    given = {"name": f"{ENTRY}.requestGPU", "value": "2", "forceString": forced}
    other = {"name": "routerSpec.annotations.example\\.com/a", "value": "x"}
    assert check_manifest(changed(wrong, {SET: [given, other]})) == []


def test_parameters_alone_are_values() -> None:
    given = [
        {"name": f"{ENTRY}.{name}", "value": value}
        for name, value in {
            "name": "chat",
            "requestGPU": "4",
            "vllmConfig.extraArgs": "{--tensor-parallel-size,8}",
        }.items()
    ]
    (told,) = [
        str(f)
        for f in check_manifest(changed(ARGO, {"spec.source.helm": {"parameters": given}}))
        if f.level is Level.MANDATORY
    ]
    assert "starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs" in told


@pytest.mark.parametrize(
    ("changes", "pods"),
    [
        ({f"{MODEL}.replicaCount": LATE}, Unknown("replicaCount is not known yet")),
        ({f"{MODEL}.replicaCount": REMOVED}, 1),
        ({f"{MODEL}.replicaCount": "2"}, 3),
        ({f"{MODEL}.replicaCount": "odd"}, Unknown("replicaCount is 'odd', which is not a count")),
    ],
)
def test_workers_may_be_unknown_or_none(changes: Changes, pods: object) -> None:
    assert engine(changes).pods == pods


@pytest.mark.parametrize(
    "body",
    [
        {"apiVersion": "helm.sh/v3", "kind": "Chart"},
        {"apiVersion": "v1", "kind": "Release"},
        {"servingEngineSpec": {}},
    ],
)
def test_other_objects_are_left_alone(body: dict[str, Any]) -> None:
    assert read_manifest(body) is None


FROM_MAP = {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "sizes", "key": "MODE"}}}
NO_MODE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "sizes", "namespace": "serving"},
    "data": {"mode": "x"},
}
FLUX_MODEL = f"spec.{MODEL}"


@pytest.mark.parametrize(
    ("namespaces", "found"),
    [
        ({"spec.targetNamespace": "serving"}, True),
        ({"spec.targetNamespace": "other"}, False),
        ({"metadata.namespace": "serving"}, True),
        ({"metadata.namespace": "serving", "spec.targetNamespace": "other"}, False),
    ],
)
def test_config_maps_are_those_beside_the_pods(namespaces: Changes, found: bool) -> None:
    for release in (FLUX, changed(K3S, {"spec.values": VALUES})):
        body = changed(release, {**namespaces, f"{FLUX_MODEL}.env": [FROM_MAP]})
        told = check_manifest(body, "it", context=Context(config_maps=gather([NO_MODE])))
        paths = [finding.path for finding in told if finding.rule == "config-map-key-exists"]
        assert bool(paths) == found
        assert all(path.startswith(f"it.{FLUX_MODEL}.env[0]") for path in paths)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"servingEngineSpec.modelSpec[0].replicaCount": 2}, "hold 6"),
        ({"servingEngineSpec.modelSpec[0].replicaCount": "2"}, "hold 6"),
        ({"servingEngineSpec.modelSpec[0].vllmConfig.tensorParallelSize": 4}, "tensor 4"),
        ({"servingEngineSpec.modelSpec[0].replicaCount": 1}, ""),
        (
            {"servingEngineSpec.modelSpec[0].vllmConfig.extraArgs": "{--tensor-parallel-size=4}"},
            "4",
        ),
        # The controller escapes commas, also in a list: this is one word, and no size.
        (
            {
                "servingEngineSpec.modelSpec[0].vllmConfig.extraArgs": (
                    "{--served-model-name=a,--tensor-parallel-size=4}"
                )
            },
            "",
        ),
        # A number in a string is a string (--set-string), which Helm writes without an exponent.
        ({"servingEngineSpec.modelSpec[0].vllmConfig.maxModelLen": "1048576"}, "context-within"),
        # The finding names the field that decides.
        (
            {"servingEngineSpec.modelSpec[0].vllmConfig.tensorParallelSize": 4},
            "spec.set.servingEngineSpec.modelSpec[0].vllmConfig.tensorParallelSize: engine",
        ),
        # They are set in the order of their names.
        (
            {
                "servingEngineSpec.modelSpec[0].vllmConfig.tensorParallelSize": 4,
                "servingEngineSpec.modelSpec[0].vllmConfig": "null",
            },
            "",
        ),
    ],
)
def test_set_overrides_the_values_of_a_helm_chart_of_k3s(stated: Changes, said: str) -> None:
    """Source: k3s-io/helm-controller v0.17.9 pkg/controllers/chart/chart.go (args, keys)."""
    body = changed(K3S, {"spec.valuesContent": yaml.safe_dump(VALUES), "spec.set": stated})
    found = [str(f) for f in check_manifest(body) if f.level is Level.MANDATORY]
    assert bool(found) is bool(said)
    assert all(said in each for each in found)


THREE_PODS = changed(VALUES, {f"{ENTRY}.replicaCount": 2})["servingEngineSpec"]["modelSpec"]
"""The model with a head and two workers."""


@pytest.mark.parametrize("stated", [{"a[0": 1}, {"servingEngineSpec.modelSpec": "{x"}])
def test_a_value_of_k3s_that_is_not_read_is_unknown(stated: Changes) -> None:
    body = changed(K3S, {"spec.values": VALUES, "spec.set": stated})
    assert {f.level for f in check_manifest(body)} == {Level.UNKNOWN}


@pytest.mark.parametrize("null", [{"modelSpec": None}, None])
def test_null_in_values_of_k3s_removes_what_the_text_has(null: object) -> None:
    stated = {"spec.valuesContent": yaml.safe_dump(VALUES)}
    body = changed(K3S, {**stated, "spec.values": {"servingEngineSpec": null}})
    facts = read_manifest(body)
    assert facts is not None
    assert facts.engines == ()


def test_a_list_of_k3s_may_be_in_a_secret() -> None:
    body = changed(
        K3S,
        {
            "spec.valuesSecrets": [{"name": "more", "keys": ["values.yaml"]}],
            "spec.set": {"servingEngineSpec.modelSpec[0].requestGPU": 8},
        },
    )
    assert {f.level for f in check_manifest(body)} == {Level.UNKNOWN}


@pytest.mark.parametrize(
    ("written", "read"),
    [  # as helm.sh/helm/v3/pkg/strvals reads the options that helm-controller writes
        ("{--a}", ["--a"]),
        ("{--a,--b}", ["--a,--b"]),
        (r"{--a\,--b}", ["--a,--b"]),
        ("{1}", ["1"]),
        ("--a,--b", "--a,--b"),
        ("Null", None),
    ],
)
def test_a_comma_of_set_separates_no_items(written: str, read: object) -> None:
    body = changed(K3S, {"spec.values": VALUES, "spec.set": {"servingEngineSpec.x": written}})
    (found,) = values_of(read_object(body))
    assert found.values["servingEngineSpec"]["x"] == read  # type: ignore[index]


@pytest.mark.parametrize(
    ("chart", "version"),
    [
        ("https://example.com/charts/vllm-stack-0.1.5.tgz", (0, 1, 5)),
        ("oci://ghcr.io/example/vllm-stack", None),
        ("vllm-stack", None),
    ],
)
def test_the_name_of_a_packed_chart_has_its_release(chart: str, version: object) -> None:
    for body in (changed(K3S, {"spec.chart": chart}), changed(BODY, {"chart": chart})):
        assert [each.version for each in values_of(read_object(body))] == [version]
    stated = changed(K3S, {"spec.chart": "https://example.com/vllm-stack-latest.tgz"})
    (found,) = values_of(read_object(stated))
    assert isinstance(found.version, Unknown)


@pytest.mark.parametrize(
    ("content", "values", "said"),
    [
        (VALUES, {"servingEngineSpec": {"modelSpec": THREE_PODS}}, "hold 6"),
        ({"servingEngineSpec": {"modelSpec": THREE_PODS}}, VALUES, ""),
        # What `values` does not state remains.
        (changed(VALUES, {f"{ENTRY}.replicaCount": 2}), {"routerSpec": {"a": "b"}}, "hold 6"),
        (
            changed(VALUES, {f"{ENTRY}.replicaCount": 2}),
            {"servingEngineSpec": {"labels": {"a": "b"}}},
            "hold 6",
        ),
    ],
)
def test_values_override_the_text_of_values_of_k3s(content: Any, values: Any, said: str) -> None:
    body = changed(K3S, {"spec.valuesContent": yaml.safe_dump(content), "spec.values": values})
    found = [str(f) for f in check_manifest(body) if f.level is Level.MANDATORY]
    assert bool(found) is bool(said)
    assert all(said in each for each in found)


def test_values_of_k3s_may_be_in_a_text_that_is_not_read() -> None:
    changes = {"spec.valuesContent": "a: *b", "spec.values": {"routerSpec": {"a": "b"}}}
    (found,) = check_manifest(changed(K3S, changes))
    assert found.level is Level.UNKNOWN
    assert "valuesContent uses aliases" in found.seen


def test_values_of_k3s_may_be_in_secrets() -> None:
    (found,) = check_manifest(changed(K3S, {"spec.valuesSecrets": [{"name": "values"}]}))
    assert found.level is Level.UNKNOWN
    assert "the models may be in other values" in found.seen


def test_a_helm_chart_of_k3s_with_another_chart_is_not_read() -> None:
    facts = read_manifest(changed(K3S, {"spec.chart": "traefik", "spec.values": VALUES}))
    assert facts is not None
    assert facts.engines == ()
