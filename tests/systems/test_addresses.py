"""The addresses of engines, held against what the pods themselves get."""

from typing import Any

import pytest

from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core import naming
from kthena_components.systems import EMITTERS, find_emitter
from tests.support.specs import ENGINE_RAY, changed, example_for


def of(compiled: Compiled) -> list[str]:
    emitter = find_emitter(compiled.plan.backend)
    assert emitter is not None
    return emitter.addresses(compiled.plan)


def lws(changes: dict[str, Any]) -> list[str]:
    return of(compile_serving(changed(example_for("lws", "native-8b"), changes)))


def test_natively_they_are_what_each_entry_pod_gets() -> None:
    args = changed(ENGINE_RAY, {"replicas": 3, "roles[0].replicas": 2})
    compiled = compile_serving(args)
    entries = [
        manifest.body["spec"]["template"]["spec"]["containers"][0]["env"]
        for manifest in compiled.manifests
        if manifest.kind == "StatefulSet" and not manifest.name.endswith("-w")
    ]
    told = [v["value"] for env in entries for v in env if v["name"] == naming.ENTRY_ADDRESS]
    assert of(compiled) == told
    assert len(told) == 6
    assert told[0] == "chat-0-decode-0-0.serving"


def test_a_leader_worker_set_has_the_names_of_its_leaders() -> None:
    """As LWS v0.9.0 pkg/utils/pod/pod_utils.go AddLWSVariables writes LWS_LEADER_ADDRESS."""
    assert lws({"replicas": 2}) == [
        "small-server-0.small-server.default",
        "small-server-1.small-server.default",
    ]


def test_a_subdomain_of_its_own_is_the_leaders_name() -> None:
    options = {"backend_options": {"subdomain_policy": "UniquePerReplica"}}
    assert lws({"replicas": 1, **options}) == ["small-server-0.small-server-0.default"]


def test_the_name_of_a_set_that_exists_is_in_them() -> None:
    options = {"backend_options": {"set_name": "vllm"}}
    assert lws({"replicas": 1, **options}) == ["vllm-0.vllm.default"]


def test_names_that_the_controller_chooses_are_not_known() -> None:
    assert lws({"autoscaled": True}) == []
    args = example_for("lws", "prefill-decode")
    assert of(compile_serving(args)) == [], "the names of a DisaggregatedSet have its revision"


@pytest.mark.parametrize("backend", [name for name in EMITTERS if name not in {"native", "lws"}])
def test_other_controllers_choose_names_or_ordinals(backend: str) -> None:
    assert of(compile_serving(example_for(backend, "native-8b"))) == []
