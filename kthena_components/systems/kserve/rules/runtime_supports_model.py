"""The rule kserve-runtime-supports-model: the runtime that a model names takes the model."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kthena_components.core.findings import Finding, part_of_rule, refuse
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, sequence
from kthena_components.systems.kserve.view import Service


def kserve_runtime_supports_model(view: Service) -> Iterator[Finding]:
    """The runtime that an InferenceService names supports its model's format and protocol.

    The version of the format counts if it is stated. A runtime that is named needs no autoSelect.
    Checked are runtimes among the objects, which must not be disabled.

    Pass: modelFormat vLLM, and a runtime whose supportedModelFormats have vLLM.
    Fail: modelFormat huggingface, and a runtime that supports vLLM only.
    Level: mandatory. KServe creates no pods.
    Source: kserve v0.20.0 pkg/controller/v1beta1/inferenceservice/components/predictor.go;
    pkg/apis/serving/v1beta1/predictor_model.go RuntimeSupportsModel;
    pkg/apis/serving/v1alpha1/servingruntime_types.go IsProtocolVersionSupported.
    """
    model, runtime = mapping(view.holder.get("model")), view.runtime
    if runtime is None:
        return
    name, path = display(model.get("runtime")), f"{view.path}.model"
    yield from _enabled(path, name, runtime)
    yield from _format(f"{path}.modelFormat", name, model.get("modelFormat"), runtime)
    yield from _protocol(f"{path}.protocolVersion", name, model.get("protocolVersion"), runtime)


@part_of_rule
def _enabled(path: str, name: str, runtime: Mapping[str, Any]) -> Iterator[Finding]:
    path = f"{path}.runtime"
    require_known(path, runtime.get("disabled"))
    if runtime.get("disabled") is True:
        yield refuse(path, f"is {name}, a runtime that is disabled", "name another runtime")


@part_of_rule
def _format(path: str, name: str, stated: Any, runtime: Mapping[str, Any]) -> Iterator[Finding]:
    listed = runtime.get("supportedModelFormats")
    known = [(mapping(each).get("name"), mapping(each).get("version")) for each in sequence(listed)]
    wanted, version = mapping(stated).get("name"), mapping(stated).get("version")
    require_known(path, stated, wanted, version, listed, *chain.from_iterable(known))
    if not isinstance(wanted, str):
        return
    names = [*dict.fromkeys(each for each, _ in known if isinstance(each, str))]
    if wanted not in names:
        has = ", ".join(map(display, names)) or "no format"
        seen = f"is {display(wanted)}, but the runtime {name} supports {has}"
        remedy = either(*map(write, names)) or "name another runtime"
        yield refuse(f"{path}.name", seen, remedy)
    elif version is not None and (wanted, version) not in known:
        versions = [each for at, each in known if at == wanted and isinstance(each, str)]
        has = ", ".join(map(display, versions)) or "no version"
        seen = f"is {display(version)}, but the runtime {name} supports {has} of {display(wanted)}"
        yield refuse(f"{path}.version", seen, either(*map(write, versions), remove()))


@part_of_rule
def _protocol(path: str, name: str, stated: Any, runtime: Mapping[str, Any]) -> Iterator[Finding]:
    known = runtime.get("protocolVersions")
    require_known(path, stated, known, *sequence(known))
    if stated and sequence(known) and stated not in sequence(known):
        has = ", ".join(map(display, sequence(known)))
        seen = f"is {display(stated)}, but the runtime {name} supports {has}"
        yield refuse(path, seen, either(*map(write, sequence(known))))
