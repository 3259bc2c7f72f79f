"""What a ModelServing registers on the kserve backend: KServe's objects, and its front Service."""

from tests.resources.build import serving
from tests.support.recorder import record
from tests.support.specs import changed
from tests.systems.kserve.samples import ENGINE, LLM, SINGLE

EXPOSED = {"expose": {"port": 80}}
API = "kubernetes:serving.kserve.io"


def test_single_pods_are_one_service() -> None:
    small = record(lambda: serving(changed(SINGLE, EXPOSED)))
    assert [(r.type, r.name) for r in small.resources] == [
        ("kthena:index:ModelServing", "chat"),
        (f"{API}/v1beta1:InferenceService", "chat-server"),
        ("kubernetes:core/v1:Service", "chat"),
    ]
    made = small.resources[1]
    assert made.request.customTimeouts.create == "3600s"
    assert made.props["spec"]["predictor"]["minReplicas"] == 1


def test_an_engine_of_several_pods_waits_for_its_runtime() -> None:
    chat = record(lambda: serving(ENGINE))
    assert [r.type for r in chat.resources[1:]] == [
        f"{API}/v1alpha1:ServingRuntime",
        f"{API}/v1beta1:InferenceService",
    ]
    runtime, service = chat.resources[1:]
    assert not runtime.request.customTimeouts.create
    assert any(urn.endswith("chat-decode") for urn in service.request.dependencies)


def test_another_number_of_pods_replaces_an_llm_service() -> None:
    chat = record(lambda: serving({**LLM, "pod_disruption_budget": False}))
    assert [r.type for r in chat.resources[1:]] == [
        f"{API}/v1alpha2:LLMInferenceServiceConfig",
        f"{API}/v1alpha2:LLMInferenceService",
    ]
    assert "spec.parallelism.pipeline" in chat.resources[2].request.replaceOnChanges
