"""The PersistentVolumeClaims that KServe mounts into the pods of a model, and that no volume shows.

KServe mounts `pvc://claim/path` into each pod of an engine: into head and workers, and into prefill
and decode. Source: kserve v0.20.0 pkg/webhook/admission/pod/storage_initializer_injector.go
CommonStorageInitialization, InjectStorageInitializer; pkg/controller/v1alpha2/llmisvc
attachModelArtifacts, attachLoRAAdapters; pkg/utils/storage.go ParsePvcURI.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.values.read import inside, mapping, sequence, unknown_in
from kthena_components.core.values.unknown import Unknown

CLAIM = "pvc://"
STORAGE_URI = "STORAGE_URI"
"""The variable of a container of one's own that KServe reads like `storageUri`."""
Stated = tuple[str, object]
"""Path below the spec with the URI, and the URI."""


def claims_of_service(predictor: Mapping[str, Any], served: str) -> Iterator[Stated]:
    """List the URIs of a predictor, with their paths below it.

    Args:
        predictor: The predictor.
        served: The field with the model's container; empty for containers of one's own.
    """
    if served:
        yield f"{served}.storageUri", mapping(predictor.get(served)).get("storageUri")
    for index, item in enumerate(sequence(predictor.get("storageUris"))):
        yield f"storageUris[{index}].uri", mapping(item).get("uri")
    for index, container in enumerate(sequence(predictor.get("containers")) if not served else ()):
        for number, item in enumerate(sequence(mapping(container).get("env"))):
            entry = mapping(item)
            if entry.get("name") == STORAGE_URI:
                yield f"containers[{index}].env[{number}].value", entry.get("value")


def claims_of_llm(spec: Mapping[str, Any]) -> Iterator[Stated]:
    """List the URIs of an LLMInferenceService, with their paths below its spec."""
    enabled, model = inside(spec.get("storageInitializer"), "enabled"), mapping(spec.get("model"))
    if enabled is False:
        return
    late = unknown_in(enabled)
    yield "model.uri", late or model.get("uri")
    for index, item in enumerate(sequence(mapping(model.get("lora")).get("adapters"))):
        yield f"model.lora.adapters[{index}].uri", late or mapping(item).get("uri")


def mounted(stated: Iterable[Stated]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the volumes that KServe adds for some URIs, each with the path of its URI."""
    for path, uri in stated:
        claim = _claim(uri)
        if claim:
            yield path, {"persistentVolumeClaim": {"claimName": claim}}


def _claim(uri: object) -> str | Unknown | None:
    """Return the claim of a URI; None if it names none."""
    if not isinstance(uri, str) or not uri.startswith(CLAIM):
        may_be = "://" not in uri if isinstance(uri, str) else True
        return unknown_in(uri) if may_be else None
    name = uri.removeprefix(CLAIM).partition("/")[0]
    return unknown_in(uri) if unknown_in(name) else name or None
