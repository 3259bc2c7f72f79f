"""Checks multi-node InferenceServices and their runtimes."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import or_more, remove
from kthena_components.core.schema.versions import is_since, known_version
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
from kthena_components.systems.kserve.rules.models_replicas_canary_runtimes_confidential import (
    FRAMEWORKS,
    components,
)
from kthena_components.systems.kserve.view import (
    GPU_ANNOTATION,
    PLAIN,
    Container,
    MultiNode,
    Service,
    known_gpus,
    named_gpus,
    resource_keys,
)

_NAME = regex(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SIZES = {
    "PIPELINE_PARALLEL_SIZE": "pipelineParallelSize",
    "TENSOR_PARALLEL_SIZE": "tensorParallelSize",
}
_AUTOSCALER = "serving.kserve.io/autoscalerClass"
_FIRST, _LAST_EXTERNAL = "0.15", "0.15.0"
"""The last release whose webhook takes the class external, and refuses none; 0.15.2 does not."""
_SCHEMES = ("pvc", "oci")


def kserve_multinode(view: Service) -> Iterator[Finding]:
    """KServe's webhooks accept it: one worker container, sizes in workerSpec, known GPUs, a volume.

    The model comes from pvc:// or oci://, nothing scales, and the sizes are 1 or more. Sizes and
    GPUs of containers in place of a model are not checked. The name is checked in every
    InferenceService, and PYTHONPATH, which KServe forbids, in every container of one and of a
    runtime.

    Up to KServe 0.15.0 the class of the autoscaler is external, later none. For release 0.15
    without its patch, external is advice.

    Pass: storageUri pvc://llama, annotation autoscalerClass none, tensorParallelSize 8.
    Fail: TENSOR_PARALLEL_SIZE in the model's env; storageUri hf://org/llama.
    Level: mandatory; advisory for minReplicas above 1, whose heads find no workers, and for a share
    of the traffic, which is ignored.
    Source: kserve pkg/apis/serving/v1beta1/inference_service_validation.go
    validateMultiNodeVariables; pkg/webhook/admission/servingruntime/servingruntime_webhook.go.
    """
    yield from _general(view)
    if view.many is not None:
        yield from _several(view, view.many)


def _several(view: Service, many: MultiNode) -> Iterator[Finding]:
    """Check the rules for multi-node services."""
    if gap := unknown_in(view.holder.get("workerSpec")):
        yield not_checked(many.path, gap)
        return
    yield from _one_worker(view, many)
    yield from _sizes(many)
    has_model = not view.is_service or view.holder.get("model") is not None
    if has_model:
        yield from _sizes_in_env(many)
    if has_model or sequence(many.fields.get("containers")):
        yield from _gpu_types(view, (many.head, many.worker) if has_model else (many.worker,))
    if not view.is_service:
        return
    if has_model:
        yield from _storage(view, many)
        yield from _autoscaler(view)
    yield from _traffic(view)
    yield from _heads(view)


@part_of_rule
def _one_worker(view: Service, many: MultiNode) -> Iterator[Finding]:
    """Check that a worker has one container; a runtime must state it."""
    containers, at = many.fields.get("containers"), f"{many.path}.containers"
    count = len(containers) if isinstance(containers, list | tuple) else 0
    require_known(at, containers)
    if count > 1:
        seen = f"has {count_of(count, 'container')}, but KServe accepts one worker container"
        yield refuse(at, seen, "keep worker-container only")
    elif count == 0 and not view.is_service and many.fields:
        yield refuse(at, "is empty, but a runtime has one worker container", "add it")


def _sizes_in_env(many: MultiNode) -> Iterator[Finding]:
    yield from _unknown_env(many.head)
    for name, at in _env(many.head):
        if name in _SIZES:
            field = f"{many.path}.{_SIZES[name]}"
            seen = f"sets {name}, but KServe reads that size from workerSpec only"
            yield refuse(at, seen, f"remove it, and write {field}")


def _env(container: Container) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each variable."""
    items = container.fields.get("env")
    for index, item in enumerate(items if isinstance(items, list | tuple) else ()):
        name = mapping(item).get("name")
        if isinstance(name, str):
            yield name, f"{container.path}.env[{index}]"


def _unknown_env(container: Container) -> Iterator[Finding]:
    env = container.fields.get("env")
    names = [mapping(item).get("name") for item in env] if isinstance(env, list | tuple) else []
    if gap := first_unknown(env, *names):
        yield not_checked(f"{container.path}.env", gap)


@part_of_rule
def _gpu_types(view: Service, containers: tuple[Container, ...]) -> Iterator[Finding]:
    """Check that containers request only GPU types that KServe knows or the annotation names."""
    named = view.annotations.get(GPU_ANNOTATION)
    at = f"metadata.annotations.{GPU_ANNOTATION}"
    require_known(at, named)
    if named != "" and named_gpus(named) is None:
        seen = f"is {display(named)}, which is not a JSON list of resource names"
        yield refuse(at, seen, """write, for example, '["nvidia.com/mig-1g.5gb"]'""")
    allowed = PLAIN.union(known_gpus(view.annotations))
    for container in containers:
        for key, where in resource_keys(container):
            if key not in allowed:
                seen = f"names {key}, which is neither cpu, memory nor storage, nor a GPU type "
                remedy = f"add it to the annotation {GPU_ANNOTATION}, or remove it"
                yield refuse(where, f"{seen}that KServe knows", remedy)


def _sizes(many: MultiNode) -> Iterator[Finding]:
    for field in _SIZES.values():
        given, at = many.fields.get(field), f"{many.path}.{field}"
        number = whole(given)
        if gap := unknown_in(given):
            yield not_checked(at, gap)
        elif given is not None and (not isinstance(number, int) or number < 1):
            yield refuse(at, f"is {display(given)}, but must be at least 1", or_more(1))


@part_of_rule
def _storage(view: Service, many: MultiNode) -> Iterator[Finding]:
    """Check that the pods of an engine load the model from one volume or image."""
    model = mapping(view.holder.get("model"))
    given, at = model.get("storageUri"), f"{many.head.path}.storageUri"
    remedy = "write pvc://claim/path, with a claim that is ReadWriteMany, or oci://image"
    if given is None:
        seen = "is missing, but the pods of an engine load the model from one volume or image"
        yield refuse(at, seen, remedy)
    elif isinstance(given, str) and given.startswith(tuple(f"{one}://" for one in _SCHEMES)):
        return
    else:
        require_known(at, given)
        seen = (
            f"is {display(given)}, but with several nodes the model must come from pvc:// or oci://"
        )
        yield refuse(at, seen, remedy)


@part_of_rule
def _autoscaler(view: Service) -> Iterator[Finding]:
    """Check that KServe's release takes the autoscaler class on several nodes."""
    given, at = view.annotations.get(_AUTOSCALER), f"metadata.annotations.{_AUTOSCALER}"
    require_known(at, given)
    release = view.object.context.versions.get("kserve")
    is_old = release is not None and known_version(release, "kserve") and not _takes_none(release)
    if given == ("external" if is_old else "none"):
        return
    is_what = "is missing" if given is None else f"is {display(given)}"
    if is_old:
        seen = f"{is_what}, but KServe {release} only takes external for an engine on several nodes"
        yield refuse(at, seen, "write 'external'")
        return
    seen = f"{is_what}, but nothing may scale an engine on several nodes"
    is_open = release is None or release.removeprefix("v") == _FIRST
    if given == "external" and is_open:
        seen += f"; up to {_LAST_EXTERNAL}, KServe takes 'external' and refuses 'none'"
    tell = advise if given == "external" and is_open and release else refuse
    yield tell(at, seen, "write 'none'")


def _takes_none(release: str) -> bool:
    """Return whether a release takes none: a minor release means its newest patch."""
    return not is_since(_LAST_EXTERNAL, release) or release.removeprefix("v") == _FIRST


@part_of_rule
def _traffic(view: Service) -> Iterator[Finding]:
    given, at = view.holder.get("canaryTrafficPercent"), "spec.predictor.canaryTrafficPercent"
    require_known(at, given)
    if given is not None:
        seen = f"is {display(given)}, but only Knative splits traffic, which runs no workerSpec"
        yield advise(at, seen, remove())


@part_of_rule
def _heads(view: Service) -> Iterator[Finding]:
    """Advise one head for each service: others have no workers and serve nothing."""
    at = "spec.predictor.minReplicas"
    number = known(whole(view.holder.get("minReplicas")), at)
    if number is not None and number > 1:
        yield Finding(
            path=at,
            seen=f"is {display(number)}, but only one head has the workers; the others serve "
            "nothing",
            remedy="write 1, and one InferenceService for each engine",
            level=Level.ADVISORY,
        )


@part_of_rule
def _general(view: Service) -> Iterator[Finding]:
    """Check the rules for every InferenceService and runtime, with one node or many."""
    yield from _environment(view)
    name = view.object.name
    if not view.is_service:
        return
    require_known("metadata.name", name)
    if isinstance(name, str) and not _NAME.fullmatch(name):
        seen = (
            f"is {display(name)}, but must be lower-case letters, digits and dashes, a letter first"
        )
        yield refuse("metadata.name", seen, "rename it")


def _environment(view: Service) -> Iterator[Finding]:
    """Find PYTHONPATH in any container, also in init containers, as KServe's webhooks do."""
    for at, fields in _containers(view):
        container = Container(path=at, fields=fields, request=None, limit=None)
        yield from _unknown_env(container)
        for key, where in _env(container):
            if key == "PYTHONPATH":
                seen = "sets PYTHONPATH, which KServe forbids"
                yield refuse(where, seen, "remove it, and put the modules into the image")


def _containers(view: Service) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give every container that may run code of KServe's."""
    for path, fields in components(view) if view.is_service else [("spec", view.holder)]:
        for name in ("model", *FRAMEWORKS, "art"):
            if view.is_service and fields.get(name) is not None:
                yield f"{path}.{name}", mapping(fields.get(name))
        for at, holder in (
            (path, fields),
            (f"{path}.workerSpec", mapping(fields.get("workerSpec"))),
        ):
            for key in ("containers", "initContainers") if view.is_service else ("containers",):
                for index, item in enumerate(sequence(holder.get(key))):
                    yield f"{at}.{key}[{index}]", mapping(item)
