"""What a ModelBooster says of a serving, beside the emitters' laws."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.manifest import BACKGROUND, WAIT_FOR
from kthena_components.systems.booster.emit import EMITTER
from kthena_components.systems.kthena.view import read_booster
from tests.rules.cases import documents
from tests.support.specs import Args, changed, example_for

ONE, RAY = example_for("booster", "native-8b"), example_for("booster", "engine-ray")
PAIR = example_for("booster", "prefill-decode")


def backend_of(args: Args, changes: dict[str, Any] | None = None) -> Any:
    """Give the backend of the ModelBooster that is written for a serving."""
    body = compile_serving(changed(args, changes)).manifests[0].body
    return body["spec"]["backend"]


def test_a_pair_installs_nothing_so_its_json_reaches_vllm_whole() -> None:
    backend = backend_of(PAIR)
    skip = {"name": "KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL", "value": "true"}
    assert backend["type"] == "vLLMDisaggregated"
    assert skip in backend["env"]
    transfers = [each["config"]["kv-transfer-config"] for each in backend["workers"]]
    assert transfers == [
        f'{{"kv_connector":"NixlConnector","kv_role":"kv_{role}"}}'
        for role in ("producer", "consumer")
    ]


def test_numbers_and_switches_are_texts() -> None:
    words = ["--num-gpu-blocks-override", "10000000", "--trust-remote-code"]
    config = backend_of(ONE, {"roles[0].engine.extra_args": words})["workers"][0]["config"]
    assert (config["num-gpu-blocks-override"], config["trust-remote-code"]) == ("10000000", "")
    assert all(isinstance(value, str) for value in config.values())


@pytest.mark.parametrize(("words", "name"), [([], None), (["--served-model-name", "a"], "a")])
def test_requests_name_the_model_and_not_its_path(words: list[str], name: str | None) -> None:
    config = backend_of(ONE, {"roles[0].engine.extra_args": words})["workers"][0]["config"]
    assert config["served-model-name"] == (name or ONE["roles"][0]["engine"]["model"])


@pytest.mark.parametrize(
    ("cache", "uri"),
    [({"claim": "models"}, "pvc://models"), ({"host_path": "/data/m"}, "hostpath:///data/m")],
)
def test_the_cache_is_a_uri(cache: Args, uri: str) -> None:
    assert backend_of(ONE, {"roles[0].cache": {**cache, "download": True}})["cacheURI"] == uri


def test_a_token_is_the_whole_secret() -> None:
    backend = backend_of(ONE, {"roles[0].hugging_face_token": {"name": "hf"}})
    assert backend["envFrom"] == [{"secretRef": {"name": "hf"}}]


def test_up_waits_until_kthena_calls_it_active() -> None:
    made = compile_serving(ONE).manifests[0]
    assert made.body["metadata"]["annotations"] == {**BACKGROUND, WAIT_FOR: "condition=Active"}
    none = compile_serving(changed(ONE, {"replicas": 0})).manifests[0]
    assert none.body["metadata"]["annotations"] == BACKGROUND


def test_what_selects_pods_uses_the_name_of_the_model_serving() -> None:
    compiled = compile_serving(changed(RAY, {"replicas": 2, "expose": {"port": 80}}))
    own = {"modelserving.volcano.sh/name": f"{RAY['name']}-vllm"}
    service, budget = (manifest.body["spec"]["selector"] for manifest in compiled.manifests[1:])
    assert own.items() <= service.items()
    assert budget["matchLabels"] == own == EMITTER.pods(compiled.plan)


def test_objects_of_others_are_read_by_the_system_that_has_the_kind() -> None:
    assert read_booster.__module__.startswith("kthena_components.systems.kthena")
    assert len(EMITTER.read_back(documents("booster"))) == len(documents("booster"))
