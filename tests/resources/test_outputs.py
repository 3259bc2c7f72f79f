"""What components give back, and what they tell while they are made."""

from datetime import date

import pulumi
import pytest

from kthena_components import ModelServing
from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.resources import _compiled as _described
from kthena_components.resources._outputs import report
from tests.resources.build import group, late, queue, role, serving, topology, unknown
from tests.resources.test_standalone import INVENTORY
from tests.support.recorder import UNKNOWN, Recorded, record
from tests.support.specs import ENGINE_RAY, GROUP, ROLE, changed, example_for, template

LIMITS = {"limits": {"nvidia.com/gpu": "1"}}


def exports(component: pulumi.ComponentResource) -> None:
    for name in type(component).__annotations__:
        pulumi.export(name, getattr(component, name))


def test_a_serving_gives_its_endpoint_counts_and_shape() -> None:
    seen = record(lambda: exports(serving(ENGINE_RAY))).exports
    (row,) = seen.pop("shape")
    assert seen == {
        "name": "chat",
        "namespace": "serving",
        "endpoint": "http://chat.serving.svc:80",
        "pod_count": 4,
        "gpu_count": 32,
        "addresses": ["chat-0-decode-0-0.serving", "chat-1-decode-0-0.serving"],
    }
    assert {key: row[key] for key in ("role", "engines", "pods", "world_size", "gpus")} == {
        "role": "decode", "engines": 2, "pods": 4, "world_size": 16, "gpus": 32,
    }  # fmt: skip


def test_a_group_gives_the_name_of_its_pod_group() -> None:
    seen = record(lambda: exports(group(GROUP, name="third"))).exports
    assert (seen["name"], seen["namespace"]) == ("chat-3", "serving")
    assert (seen["pod_count"], seen["gpu_count"]) == (2, 16)


def test_a_role_gives_the_address_of_each_engine() -> None:
    seen = record(lambda: exports(role({**ROLE, "replicas": 2}))).exports
    assert (seen["name"], seen["pod_count"], seen["gpu_count"]) == ("decode", 4, 32)
    assert seen["addresses"] == ["chat-0-decode-0-0.serving", "chat-0-decode-1-0.serving"]


def test_every_declared_output_is_set_and_registered() -> None:
    def program() -> None:
        for component in (
            serving({**ENGINE_RAY, "name": "other"}), group(GROUP), role(ROLE), topology(INVENTORY),
            queue({}),
        ):  # fmt: skip
            for name in type(component).__annotations__:
                assert isinstance(getattr(component, name), pulumi.Output), name

    roots = [r for r in record(program).resources if not r.request.custom and "$" not in r.urn]
    for registration in roots:
        assert registration.outputs, registration.urn


def test_outputs_are_known_in_a_preview() -> None:
    preview = record(lambda: exports(serving(ENGINE_RAY)), preview=True)
    assert preview.exports == record(lambda: exports(serving(ENGINE_RAY))).exports


@pytest.mark.parametrize("backend", ["native", "kthena"])
def test_what_is_in_a_queue_waits_for_it_and_hears_its_name_from_it(backend: str) -> None:
    def program() -> None:
        org = queue({"capability": {"cpu": 4}}, name="org")
        night = queue({"parent": org.name, "capability": {"cpu": 4}}, name="night")
        serving({**ENGINE_RAY, "backend": backend, "queue": night.name})

    made, early = record(program), record(program, preview=True)
    kind = "PodGroup" if backend == "native" else "ModelServing"
    for seen, names in ((made, ("org", "night")), (early, (UNKNOWN, UNKNOWN))):
        queues = {r.name: r for r in seen.of_kind("Queue") if r.type.startswith("kubernetes:")}
        assert queues["night"].props["spec"]["parent"] == names[0]
        inside = next(r for r in seen.of_kind(kind) if r.request.custom)
        stated = inside.props["metadata"].get("annotations", {}).get(naming.QUEUE_NAME)
        assert inside.props["spec"].get("queue", stated) == names[1]
        assert {"Queue/night", "Queue/org"} <= seen.waits_for(inside)


def test_without_expose_there_is_no_endpoint() -> None:
    hidden = {key: value for key, value in ENGINE_RAY.items() if key != "expose"}
    assert "endpoint" not in record(lambda: exports(serving(hidden))).exports


def stated(seen: Recorded) -> set[str]:
    urns = seen.named("user", "ConfigMap").request.dependencies
    return {f"{seen.by_urn(urn).kind}/{seen.by_urn(urn).name}" for urn in urns}


def using(output: str) -> Recorded:
    def program() -> None:
        chat: ModelServing = serving(ENGINE_RAY)
        data = {"data": {"value": getattr(chat, output)}}
        pulumi.CustomResource("kubernetes:core/v1:ConfigMap", "user", data)

    return record(program)


def test_what_uses_the_endpoint_comes_after_the_engines() -> None:
    engines = {"StatefulSet/chat-0-decode-0", "StatefulSet/chat-1-decode-0"}
    assert stated(using("endpoint")) == {"Service/chat", "PodDisruptionBudget/chat", *engines}


def test_what_uses_the_name_does_not_wait() -> None:
    assert stated(using("name")) == set()


def test_what_was_filled_in_is_told_once_and_about_the_component() -> None:
    roles = [{"name": "a", "replicas": 2, "entry_template": template(resources=LIMITS)}]
    seen = record(lambda: serving({"name": "chat", "replicas": 3, "roles": roles}))
    notes = [(text, urn) for _, text, urn in seen.logs if "requests-mirrored" in text]
    ((text, urn),) = notes
    assert urn == "urn:pulumi:stack::project::kthena:index:ModelServing::chat"
    assert text == (
        "roles[0].entry_template: container 'app': nvidia.com/gpu 1 had limits without requests; "
        "requests now equal the limits, because Volcano and Kthena count requests only. "
        "[requests-mirrored]"
    )


def test_identical_notes_are_told_once() -> None:
    note = Finding(path="roles[0]", seen="was filled in", rule="note", level=Level.ADVISORY)
    seen = record(lambda: report(pulumi.ComponentResource("test:index:Any", "any"), [note, note]))
    assert seen.infos() == [str(note)]


def test_policies_see_counts_and_no_template() -> None:
    (root,) = record(lambda: serving(ENGINE_RAY)).of_kind("ModelServing")
    assert set(root.props) == {"name", "namespace", "backend", "replicas", "shape"}
    assert root.props["replicas"] == 2


def test_what_is_waived_is_a_warning_and_policies_see_the_waiver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_described, "today", lambda: date(2026, 6, 30))
    waivers = {"world-size-equals-gpus": "2026-12-31 half of each node is in repair"}
    wrong = changed(ENGINE_RAY, {"roles[0].engine.parallelism.pipeline": 1, "waivers": waivers})
    seen = record(lambda: serving(wrong))
    assert seen.of_kind("ModelServing")[0].props["waivers"] == waivers
    ((level, text),) = {(level, text) for level, text, _ in seen.logs if "waived" in text.lower()}
    assert level == "WARNING"
    assert text.endswith(
        "Waived until 2026-12-31: half of each node is in repair. [world-size-equals-gpus]"
    )


def test_a_serving_of_no_groups_has_a_service_alone() -> None:
    seen = record(lambda: exports(serving(changed(ENGINE_RAY, {"replicas": 0}))))
    assert [r.kind for r in seen.resources] == ["ModelServing", "Service"]
    assert seen.exports["pod_count"] == 0


@pytest.mark.parametrize("backend", ["native", "kthena", "lws", "kserve"])
def test_the_namespace_may_be_made_by_the_same_program(backend: str) -> None:
    base = ENGINE_RAY if backend == "native" else example_for(backend, "native-8b")
    args = changed(base, {"expose": {"port": 80}})

    def program(namespace: object) -> Recorded:
        return record(lambda: exports(serving({**args, "namespace": namespace})))

    # The Output is made inside of the run, where its event loop is.
    there = record(lambda: exports(serving({**args, "namespace": late("serving")})))
    plain = program("serving")
    assert there.exports == plain.exports
    assert [(r.urn, r.props) for r in there.resources] == [
        (r.urn, r.props) for r in plain.resources
    ]


def test_a_namespace_that_a_preview_does_not_know_is_unknown_there() -> None:
    def program() -> None:
        made = {**ENGINE_RAY, "namespace": unknown()}
        serving(made)
        serving({**made, "namespace": unknown("other")}, name="same")

    seen = record(program, preview=True)
    assert seen.error is None, "nobody knows whether the namespaces are the same"
    spaces = {r.props["metadata"]["namespace"] for r in seen.of_kind("StatefulSet")}
    assert spaces == {UNKNOWN}


def test_a_role_has_addresses_in_a_namespace_that_is_known_late() -> None:
    seen = record(lambda: exports(role({**ROLE, "namespace": late("serving")})))
    assert seen.exports["addresses"] == ["chat-0-decode-0-0.serving"]
    assert seen.exports["namespace"] == "serving"
