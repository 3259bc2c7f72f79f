"""KServe's rules about confidential models, and about the runtime that a model names."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kthena_components.core.findings import Finding, advise, not_checked, part_of_rule, refuse
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kserve.rules.one_model_replicas_canary import FRAMEWORKS
from kthena_components.systems.kserve.view import Service

SECRET = regex(r"kbs:///[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+")
"""The name of the key of a confidential model.

Source: kserve v0.20.0 pkg/validation/confidential.go KBSResourceIdRegexp.
"""


def kserve_confidential(view: Service) -> Iterator[Finding]:
    """A confidential model of an InferenceService has a storageUri and a valid key.

    Pass: storageUri s3://models/llama, confidential.resourceId kbs:///models/key/1.
    Fail: confidential.enabled without storageUri; resourceId key-1.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1beta1/inference_service_validation.go
    validateConfidential; pkg/validation/confidential.go.
    """
    for name in ("model", *FRAMEWORKS) if view.is_service else ():
        path, fields = f"spec.predictor.{name}", mapping(view.holder.get(name))
        stated = mapping(fields.get("confidential"))
        key, uri = text(stated.get("resourceId"), ""), text(fields.get("storageUri"), "")
        if gap := first_unknown(fields.get("confidential"), stated.get("enabled"), key, uri):
            yield not_checked(f"{path}.confidential", gap)
        elif stated.get("enabled") is not True:
            continue
        elif not uri:
            seen = "is missing, but the model is confidential"
            yield refuse(f"{path}.storageUri", seen, "write where it is")
        elif key and not SECRET.fullmatch(str(key)):
            at, remedy = f"{path}.confidential.resourceId", "write kbs:///repository/type/tag"
            yield refuse(at, f"is {display(key)}, which is no key", remedy)


def kserve_runtime_formats(view: Service) -> Iterator[Finding]:
    """A runtime that KServe may select automatically has one priority for each model format.

    Pass: huggingface of version 1 and of version 2, both with priority 1.
    Fail: huggingface with priority 1, and again with priority 2.
    Level: advisory. KServe's webhook accepts the first runtime of a namespace, and rejects others
    and every update. The priorities of other runtimes in the cluster are unknown here.
    Source: kserve v0.20.0 pkg/webhook/admission/servingruntime/servingruntime_webhook.go
    validateModelFormatPrioritySame.
    """
    spec, at = view.object.spec, "spec.supportedModelFormats"
    if view.is_service or spec.get("disabled") is True:
        return
    listed = spec.get("supportedModelFormats")
    require_known(at, spec.get("disabled"), unknown_inside(listed))
    known: dict[str, object] = {}
    for index, item in enumerate(map(mapping, sequence(listed))):
        name, priority = text(item.get("name")), whole(item.get("priority"))
        if item.get("autoSelect") is not True or not isinstance(name, str):
            continue
        first = known.setdefault(name, priority)
        if isinstance(first, int) and isinstance(priority, int) and first != priority:
            seen = (
                f"is {priority}, but {first} for {display(name)} before, and KServe rejects updates"
            )
            yield advise(f"{at}[{index}].priority", seen, write(first, f"write {first}"))


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
