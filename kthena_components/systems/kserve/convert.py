"""Reads objects of KServe back to the arguments of a serving."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.read_back import (
    SERVE,
    described_template,
    filled_map,
    namespaced,
    stated,
    with_split_name,
)
from kthena_components.core.templates import lay_over
from kthena_components.core.values.read import (
    group_kind,
    mapping,
    name_of,
    namespace_or_default,
    sequence,
)
from kthena_components.systems.emitter import Converter, Pair
from kthena_components.systems.kserve import convert_service
from kthena_components.systems.kserve.convert_service import CLUSTER_RUNTIME
from kthena_components.systems.kserve.emit_objects import CONFIG, LLM, PREFILL, RUNTIME, SCHEMES
from kthena_components.systems.kserve.templates import OWN_ENV, mentions, without_variables
from kthena_components.systems.kserve.view import GROUP, SERVICE, LlmWorkload, read_llm_service
from kthena_components.systems.system import Body

# Reads an LLMInferenceService back to the arguments of a serving.
#
# KServe merges it with configs. Those of the object's namespace that are among the files are merged
# here, too. Source: kserve v0.20.0 pkg/controller/v1alpha2/llmisvc/config_merge.go.


CONFIGS = "configs"
"""Our field with the names of the configs that an object is merged with."""
_PREFIX, _DATA = "kserve-config-llm-", "-data-parallel"
_ALIASES = [{"name": same, "value": f"$({name})"} for name, same in naming.LWS_ENV.items()]
_SCHEDULER = "default-scheduler"


def _merged_llm(body: Body, others: Sequence[Body]) -> tuple[Body, tuple[int, ...]]:
    """Merge an object with the configs of its namespace that KServe takes for it."""
    wanted, found = set(_configs_of(body)), dict[str, int]()
    at = namespace_or_default(body)
    for index, other in enumerate(others):
        same = group_kind(other) == (GROUP, CONFIG) and namespace_or_default(other) == at
        if same and name_of(other) in wanted:
            found[str(name_of(other))] = index
    spec: Mapping[str, Any] = {}
    for name in sorted(found):
        spec = lay_over(spec, mapping(others[found[name]].get("spec")))
    whole = {**body, "spec": lay_over(spec, mapping(body.get("spec"))), CONFIGS: sorted(found)}
    return whole, tuple(found.values())


def _configs_of(body: Body) -> Iterator[str]:
    """Name the configs for the workers of an object. Source: config_merge.go."""
    workloads = read_llm_service(read_object(body)).workloads
    several = len(workloads) > 1
    for workload in workloads:
        part = "prefill-worker" if workload.is_prefill else "decode-worker" if several else "worker"
        kind = "data" if workload.states("data") or workload.states("dataLocal") else "pipeline"
        yield f"{_PREFIX}{part}-{kind}-parallel"


def _filled_llm(body: Body) -> dict[str, Any]:
    """Fill in the number of engines, and the scheduler of each pod."""
    metadata = namespaced(body.get("metadata"))
    spec = _filled_workload(mapping(body.get("spec")))
    if isinstance(spec.get(PREFILL), Mapping):
        spec[PREFILL] = _filled_workload(spec[PREFILL])
    return {**body, "metadata": metadata, "spec": spec}


def _filled_workload(fields: Mapping[str, Any]) -> dict[str, Any]:
    pods = {
        key: filled_map(fields[key], {"schedulerName": _SCHEDULER})
        for key in ("template", "worker")
        if isinstance(fields.get(key), Mapping)
    }
    return {**filled_map(fields, {"replicas": 1}), **pods}


def _arguments_of_llm(body: Body) -> dict[str, Any]:
    """Return the arguments of an object whose defaults are filled in.

    Raises:
        SpecError: KServe's own presets have its pods.
    """
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    workloads = read_llm_service(read_object(body)).workloads
    missing = list(_without_pods(body, workloads))
    if missing:
        raise SpecError(missing, f"{LLM} {name_of(body)}")
    alone = len(workloads) == 1
    uri = mapping(spec.get("model")).get("uri")
    loads = mapping(spec.get("storageInitializer")).get("enabled") is not False
    configs = sequence(body.get(CONFIGS))
    return stated(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        replicas=spec.get("replicas") if alone else 1,
        recovery_policy="RoleRecreate",
        scheduler_name=mapping(spec.get("template")).get("schedulerName"),
        roles=[_role(each, alone=alone) for each in workloads],
        backend_options=stated(
            kind=LLM,
            storage_uri=uri if loads and str(uri).startswith(SCHEMES) else None,
            write_configs=None if configs else False,
            replaces_presets=True if any(_DATA in str(name) for name in configs) else None,
        ),
    )


def _without_pods(body: Body, workloads: Sequence[LlmWorkload]) -> Iterator[Finding]:
    """Report workloads whose pods KServe's presets complete."""
    for workload in workloads:
        containers = sequence(mapping(workload.fields.get("template")).get("containers"))
        own = bool(containers) and mapping(containers[0]).get("image") is not None
        # KServe publishes no preset for pipelines.
        preset = workload.states("data") or not workload.many
        if not own or (preset and not sequence(body.get(CONFIGS))):
            yield Finding(
                path=f"{workload.path}.template",
                seen="is completed by a preset of KServe, so its pods are not known",
                remedy="add the LLMInferenceServiceConfig of this namespace with all of the pod",
                rule="convertible",
            )


def _role(workload: LlmWorkload, *, alone: bool) -> dict[str, Any]:
    """Describe a workload as a role; a serving of one workload has its replicas as groups."""
    fields, pods = workload.fields, workload.pods
    labels = mapping(fields.get("labels"))
    usual = SERVE if alone else PREFILL if workload.is_prefill else "decode"
    entry, worker = (_template(fields, key) for key in ("template", "worker"))
    return stated(
        name=labels.get(naming.ROLE) or usual,
        replicas=None if alone else fields.get("replicas"),
        worker_replicas=pods - 1 if isinstance(pods, int) else None,
        entry_template=entry,
        worker_template=worker,
    )


def _template(fields: Mapping[str, Any], key: str) -> Any:
    if not isinstance(fields.get(key), Mapping):
        return None
    metadata = {name: fields.get(name) for name in ("labels", "annotations")}
    scheduler = mapping(fields.get("template")).get("schedulerName")
    found = described_template({"metadata": metadata, "spec": fields[key]}, scheduler)
    return None if found is None else without_variables(found, _ALIASES)


_SERVICE_LABEL, _PART = f"{GROUP}/inferenceservice", "component"


def _is_llm(body: Body) -> bool:
    return group_kind(body)[1] == LLM


def _merged(body: Body, others: Sequence[Body]) -> tuple[Body, tuple[int, ...]]:
    return (_merged_llm if _is_llm(body) else convert_service.merged)(body, others)


def _filled(body: Body) -> dict[str, Any]:
    return (_filled_llm if _is_llm(body) else convert_service.filled)(body)


def _arguments(body: Body) -> dict[str, Any]:
    return (_arguments_of_llm if _is_llm(body) else convert_service.arguments)(body)


def _same_name(body: Body, args: dict[str, Any], _shared: bool) -> dict[str, Any]:
    """Split an InferenceService's name into the serving's and the role's, in the only way."""
    return args if _is_llm(body) else with_split_name(body, args)


def _elsewhere(args: dict[str, Any]) -> dict[str, Any]:
    """Reject pods that need variables which only KServe sets.

    Raises:
        SpecError: There are such pods.
    """
    found = [
        Finding(
            path=f"roles[{index}].{field}",
            seen=f"uses {', '.join(names)}, which only KServe sets",
            remedy="write the value, and ENTRY_ADDRESS for the address of the first pod",
            rule="convertible",
        )
        for index, role in enumerate(args["roles"])
        for field in ("entry_template", "worker_template")
        if (names := _kserves_own(role.get(field)))
    ]
    if found:
        raise SpecError(found, f"{SERVICE} {args.get('name')}")
    return args


def _kserves_own(template: object) -> list[str]:
    """List the variables in a template that KServe sets and the template does not."""
    if not isinstance(template, Mapping):
        return []
    names = [name for name in OWN_ENV if mentions(template, name)]
    listed = sequence(mapping(template.get("spec")).get("containers"))
    env = [mapping(e) for one in listed for e in sequence(mapping(one).get("env"))]
    return [name for name in names if not any(e.get("name") == name for e in env)]


def _label(pair: Pair) -> Pair | None:
    key, value = pair
    return (naming.NAME, value) if key == _SERVICE_LABEL else None


CONVERTER = Converter(
    kinds=((GROUP, SERVICE), (GROUP, LLM)),
    filled=_filled,
    merged=_merged,
    beside=((GROUP, RUNTIME), (GROUP, CLUSTER_RUNTIME), (GROUP, CONFIG)),
    arguments=_arguments,
    elsewhere=_elsewhere,
    same_name=_same_name,
    only_here=("storage_uri",),
    labels=(f"{GROUP}/",),
    label=_label,
)
