"""The models that KServe downloads, and that its containers serve from a folder.

A container serves /mnt/models, and the object names the model: `hf://owner/model:revision`. A URI
that leads elsewhere, such as to a claim, does not tell which model is there, unless a part of it is
a model's name.
Source: kserve pkg/constants/constants.go (DefaultModelLocalMountPath);
python/storage/kserve_storage/kserve_storage.py (_download_hf);
python/huggingfaceserver/huggingfaceserver/__main__.py (--model_dir);
config/llmisvcconfig (--served-model-name);
pkg/controller/v1alpha2/llmisvc/workload_storage.go (attachModelArtifacts).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.models import find_by_folder
from kthena_components.core.values.read import inside, mapping, sequence, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Blank, Unknown, is_unresolved

_FOLDER = "/mnt/models"
_HUB = regex(r"hf://(?P<name>[^/:\s]+/[^/:\s]+)(?::[^/\s]*)?")
_OWN_SERVER, _SERVED = "huggingfaceserver", "--served-model-name"
Folders = Mapping[str, str]
"""The model in each folder."""


def models_of_service(predictor: Mapping[str, Any], served: str) -> Folders:
    """Return the models that an InferenceService states, by their folders in its containers.

    Args:
        served: The field with the model's container; empty for containers of one's own.
    """
    return dict(_stated_by_service(predictor, served))


def models_of_llm(spec: Mapping[str, Any]) -> Folders:
    """Return the model that an LLMInferenceService states, by its folder in the containers."""
    if mapping(spec.get("storageInitializer")).get("enabled") is False:
        return {}
    model = mapping(spec.get("model"))
    return dict(_model(model.get("uri"), _FOLDER, served=model.get("name")))


def name_model(pod: PodFacts, folders: Folders, context: Context) -> PodFacts:
    """Name the model of a command that serves one of some folders."""
    command = pod.command
    if command is None or not folders:
        return pod
    stated = command.model
    if stated is None and command.engine == _OWN_SERVER and command.hidden is None:
        stated = _FOLDER  # its default
    model = folders.get(stated.rstrip("/")) if isinstance(stated, str) else None
    if model is None:
        return pod
    shape = pod.shape or context.shapes.get(model.casefold())
    return replace(pod, command=replace(command, model=model), shape=shape)


def served_as(pod: PodFacts, spec: Mapping[str, Any]) -> PodFacts:
    """Add the served name with which a preset starts the engine of an LLMInferenceService."""
    name, command = mapping(spec.get("model")).get("name"), pod.command
    if command is None or not isinstance(name, str) or is_unresolved(name):
        return pod
    options = {_SERVED: name, **command.options}
    return replace(pod, command=replace(command, options=MappingProxyType(options)))


def _stated_by_service(predictor: Mapping[str, Any], served: str) -> Iterator[tuple[str, str]]:
    """List the models that a predictor states, each with the folder that it is served from."""
    if served:
        yield from _model(mapping(predictor.get(served)).get("storageUri"), _FOLDER)
    listed = [mapping(each) for each in sequence(predictor.get("storageUris"))]
    if len(listed) == 1:
        yield from _model(listed[0].get("uri"), listed[0].get("mountPath", _FOLDER))
    containers = sequence(predictor.get("containers")) if not served else ()
    for container in map(mapping, containers):
        for entry in map(mapping, sequence(container.get("env"))):
            if entry.get("name") == STORAGE_URI:
                yield from _model(entry.get("value"), _FOLDER)


def _model(uri: object, folder: object, *, served: object = None) -> Iterator[tuple[str, str]]:
    """Yield a folder and the model in it: one of the hub, or a URI with the name of a model.

    A part of the URI may be a placeholder, such as its bucket.
    """
    blank = isinstance(uri, Blank)
    if isinstance(uri, str) and isinstance(folder, str) and (blank or not is_unresolved(uri)):
        found = None if blank else _HUB.fullmatch(uri)
        if found is not None:
            yield folder.rstrip("/"), found["name"]
        elif not uri.startswith("hf:") and find_by_folder(uri, served) is not None:
            yield folder.rstrip("/"), uri


# The PersistentVolumeClaims that KServe mounts into the pods of a model, and that no volume shows.
#
# KServe mounts `pvc://claim/path` into each pod of an engine: into head and workers, and into
# prefill and decode. Source: kserve v0.20.0
# pkg/webhook/admission/pod/storage_initializer_injector.go CommonStorageInitialization,
# InjectStorageInitializer; pkg/controller/v1alpha2/llmisvc attachModelArtifacts,
# attachLoRAAdapters; pkg/utils/storage.go ParsePvcURI.


CLAIM = "pvc://"
STORAGE_URI = "STORAGE_URI"
"""The variable of a container of one's own that KServe reads like `storageUri`."""
Stated = tuple[str, object]
"""Path below the spec with the URI, and the URI."""


def claims_of_service(predictor: Mapping[str, Any], served: str) -> Iterator[Stated]:
    """List the URIs of a predictor, with their paths below it.

    Args:
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
