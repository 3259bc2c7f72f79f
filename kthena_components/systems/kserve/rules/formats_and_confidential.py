"""KServe's rules about confidential models and about the formats of a runtime."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, advise, not_checked, refuse
from kthena_components.core.remedies import write
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
