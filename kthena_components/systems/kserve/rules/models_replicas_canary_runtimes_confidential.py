"""Rules of every InferenceService: models and their runtimes, replicas and canaries.

How it scales is in autoscaling.py. A rule's docstring documents it.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kthena_components.core.findings import (
    Finding,
    advise,
    each_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import at_most, either, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.kserve.view import MODE, Service

COMPONENTS = ("predictor", "transformer", "explainer")
FRAMEWORKS = (
    "huggingface",
    "lightgbm",
    "onnx",
    "paddle",
    "pmml",
    "pytorch",
    "sklearn",
    "tensorflow",
    "triton",
    "xgboost",
)
"""Fields of a predictor that KServe turns into `model`."""
_OWN = "kserve-container"
_STANDARD = ("Standard", "RawDeployment")
_ALL = 100


def components(view: Service) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the predictor, transformer and explainer that an InferenceService has, with paths."""
    for name in COMPONENTS if view.is_service else ():
        stated = view.object.spec.get(name)
        if stated is not None and not unknown_in(stated):
            yield f"spec.{name}", mapping(stated)


@each_of(components)
def kserve_one_model(path: str, fields: Mapping[str, Any]) -> Iterator[Finding]:
    """A predictor, a transformer and an explainer each have exactly one implementation.

    For a predictor, this is a model, a framework or a container kserve-container. A model or a
    framework must not have a name.

    Pass: model with a runtime; containers, one of them kserve-container.
    Fail: model beside a container kserve-container; a transformer without containers.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1beta1 predictor.go, transformer.go and explainer.go
    GetImplementations; inference_service_validation.go validatePredictor.
    """
    listed = fields.get("containers")
    names = [text(mapping(item).get("name")) for item in sequence(listed)]
    served = [name for name in ("model", *FRAMEWORKS, "art") if fields.get(name) is not None]
    require_known(path, listed, *names, *(fields.get(name) for name in served))
    number = _answering(path, served, names)
    if number != 1:
        what = "no implementation" if number == 0 else f"{number} implementations"
        stated = ", ".join([*served, *(["containers"] if names else [])])
        seen = f"has {what}{f' ({stated})' if number else ''}, but KServe accepts exactly one"
        yield refuse(path, seen, "keep a model, or containers of your own")
    for name in served:
        own = mapping(fields.get(name)).get("name")
        if path == "spec.predictor" and own not in (None, "") and not unknown_in(own):
            seen = f"is {display(own)}, but KServe names the container of a model itself"
            yield refuse(f"{path}.{name}.name", seen, remove())


def _answering(path: str, served: list[str], names: list[Any]) -> int:
    if path != "spec.predictor":
        return len([name for name in served if name == "art"]) + bool(names)
    packed = [name for name in served if name in FRAMEWORKS]
    number = len(packed) or len([name for name in served if name == "model"])
    return number + names.count(_OWN) or int(bool(names))


def kserve_replicas(view: Service) -> Iterator[Finding]:
    """minReplicas, maxReplicas and containerConcurrency are at least 0, and in order.

    minReplicas is at most maxReplicas. maxReplicas 0 means no limit.

    Pass: minReplicas 1, maxReplicas 4; minReplicas 2, maxReplicas 0.
    Fail: minReplicas 4, maxReplicas 2; minReplicas -1.
    Level: mandatory. KServe's webhook rejects it.
    Source: kserve v0.20.0 pkg/apis/serving/v1beta1/component.go validateReplicas,
    validateContainerConcurrency.
    """
    places = list(components(view))
    for index, canary in enumerate(sequence(view.object.spec.get("canary"))):
        places.append(
            (f"spec.canary[{index}].predictor", mapping(mapping(canary).get("predictor")))
        )
    for path, fields in places if view.is_service else ():
        for name in ("minReplicas", "maxReplicas", "containerConcurrency"):
            number = whole(fields.get(name))
            if gap := unknown_in(number):
                yield not_checked(f"{path}.{name}", gap)
            elif isinstance(number, int) and number < 0:
                yield refuse(f"{path}.{name}", f"is {number}, but must be at least 0", or_more(0))
        least, most = count(fields.get("minReplicas"), 1), count(fields.get("maxReplicas"), 0)
        if isinstance(least, int) and isinstance(most, int) and least > most > 0:
            seen = f"is {least}, but maxReplicas is {most}"
            remedy = f"write at most {most}, or raise maxReplicas"
            yield refuse(f"{path}.minReplicas", seen, remedy)


def kserve_canary(view: Service) -> Iterator[Finding]:
    """A canary has its own name, a share of the traffic, and a fixed number of single pods.

    It needs deploymentMode Standard and a predictor with a model. It has no workerSpec, no
    maxReplicas and no autoscaler, and at most as many replicas as the predictor. All canaries
    together get at most 100% of the traffic.

    Pass: predictor.name v2, trafficPercent 10.
    Fail: a canary with workerSpec; minReplicas 5 beside a predictor with minReplicas 4.
    Level: mandatory. KServe's webhook rejects it. Advisory without deploymentMode, for which the
    cluster has a default.
    Source: kserve v0.20.0 pkg/apis/serving/v1beta1/inference_service_validation.go
    validateCanarySpecs.
    """
    listed = view.object.spec.get("canary")
    if not view.is_service or listed in (None, []):
        return
    mode, total = view.annotations.get(MODE), 0
    require_known("spec.canary", listed, mode)
    if mode is None:
        seen = "is missing, so canaries work only if the cluster's default is Standard"
        yield advise(f"metadata.annotations.{MODE}", seen, write("Standard", "write Standard"))
    elif mode not in _STANDARD:
        seen = f"is {display(mode)}, but canaries need Standard"
        yield refuse(f"metadata.annotations.{MODE}", seen, write("Standard", "write Standard"))
    if not _loads_model(view.holder):
        seen = "has no model, but a canary runs beside one"
        yield refuse("spec.predictor", seen, "add a model with its storageUri")
    names = {text(view.holder.get("name")): "the predictor"}
    for index, canary in enumerate(map(mapping, sequence(listed))):
        path, share = f"spec.canary[{index}]", whole(canary.get("trafficPercent"))
        total += share if isinstance(share, int) else 0
        if isinstance(share, int) and not 0 <= share <= _ALL:
            seen = f"is {share}, but must be from 0 to {_ALL}"
            yield refuse(f"{path}.trafficPercent", seen, "write, for example, 10")
        predictor = mapping(canary.get("predictor"))
        yield from _one_canary(view, predictor, f"{path}.predictor", names)
    if total > _ALL:
        yield refuse("spec.canary", f"get {total}% together", "lower them to 100%")


def _loads_model(predictor: Mapping[str, Any]) -> bool:
    """Return whether a predictor has a model, or says where it is."""
    stated = [mapping(predictor.get(name)).get("storageUri") for name in FRAMEWORKS]
    env = [
        mapping(item).get("name")
        for container in sequence(predictor.get("containers"))
        for item in sequence(mapping(container).get("env"))
    ]
    known = "STORAGE_URI" in env or any(uri is not None for uri in stated)
    return known or predictor.get("model") is not None or bool(first_unknown(*env, *stated))


def _one_canary(
    view: Service, predictor: Mapping[str, Any], path: str, names: dict[Any, str]
) -> Iterator[Finding]:
    """Check one canary: a name of its own, single pods, and at most the predictor's pods."""
    name = text(predictor.get("name"), "")
    if gap := unknown_in(name):
        yield not_checked(f"{path}.name", gap)
    elif name == "":
        yield refuse(f"{path}.name", "is missing", "add a name, such as v2")
    elif name in names:
        seen = f"is {display(name)}, which is also the name of {names[name]}"
        yield refuse(f"{path}.name", seen, "rename it")
    names.setdefault(name, path)
    for field in ("workerSpec", "maxReplicas", "scaleTarget", "scaleMetric", "autoScaling"):
        if predictor.get(field) not in (None, 0):
            why = "runs in single pods" if field == "workerSpec" else "has a fixed number of pods"
            yield refuse(f"{path}.{field}", f"is given, but a canary {why}", remove())
    own, stable = count(predictor.get("minReplicas")), count(view.holder.get("minReplicas"), 1)
    if isinstance(own, int) and isinstance(stable, int) and own > stable:
        seen = f"is {own}, but the predictor has {stable}"
        yield refuse(f"{path}.minReplicas", seen, at_most(stable))


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
            yield refuse(at, f"is {display(key)}, which is not a key", remedy)


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
                f"is {priority}, but {display(name)} has {first} above, and KServe rejects updates"
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
    """Check the format and the version of a model against those that its runtime supports."""
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
