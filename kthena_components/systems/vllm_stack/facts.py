"""Read releases of the Helm chart vllm-stack, by Pulumi, Flux or Argo CD.

The chart's objects do not show the command of an engine on Ray, which stands in a ConfigMap; the
values do. A values file alone is not read: nothing in it says of which chart it is.
Source: vllm-project/production-stack helm/templates.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.facts.container import TokenFacts, TokenKind, looks_like_token
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import Finding, join_path
from kthena_components.core.values.embedded import go_text, read_yaml_text
from kthena_components.core.values.read import as_count, as_list, as_map, group_kind, name_of
from kthena_components.core.values.unknown import (
    OUTPUT_CLOSE,
    OUTPUT_OPEN,
    MaybeInt,
    Unknown,
    is_unresolved,
)
from kthena_components.systems.vllm_stack.rules import (
    CHART,
    Model,
    judge_models,
    read_models,
    unread,
)

RELEASE = ("helm.sh", "Release")
"""How policies name Pulumi's Release, whose type is kubernetes:helm.sh/v3:Release."""
HELM_RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
APPLICATION = ("argoproj.io", "Application")
KINDS = frozenset({RELEASE, HELM_RELEASE, APPLICATION})
_GIT_PATH = ("vllm-project/production-stack", "helm")
"""Where the chart stands in its own repository."""
_LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
_MODELS = "servingEngineSpec.modelSpec"
_BESIDE = Unknown("the models may stand in other values")
_FLAGS = {
    "maxModelLen": "--max-model-len",
    "tensorParallelSize": "--tensor-parallel-size",
    "gpuMemoryUtilization": "--gpu-memory-utilization",
}
_RAY_FLAGS = {**_FLAGS, "pipelineParallelSize": "--pipeline-parallel-size"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """The values of one release of the chart."""

    path: str
    values: object
    beside: bool
    """Whether there are values elsewhere too."""


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a release of vllm-stack; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    engines: list[EngineFacts] = []
    gang = False
    for found in _releases(body, path):
        models = read_models(found.values, found.path)
        engines += [_engine(model) for model in models] if isinstance(models, tuple) else []
        asked = as_map(as_map(found.values).get("servingEngineSpec")).get("schedulerName")
        gang = gang or asked == "volcano" or is_unresolved(asked)
    return ServingFacts(path=path, name=name_of(body), engines=tuple(engines), gang_expected=gang)


def judge(body: Mapping[str, Any], path: str = "") -> list[Finding]:
    """Judge a release of vllm-stack by the chart's own rules, all findings at once."""
    found: list[Finding] = []
    for release in _releases(body, path):
        models = read_models(release.values, release.path)
        if models == () and release.beside and _models_of(release) is None:
            models = _BESIDE
        if isinstance(models, Unknown):
            found.append(unread(release.path, models))
        else:
            found += judge_models(models)
    return found


def _models_of(release: _Values) -> object:
    spec = as_map(as_map(release.values).get("servingEngineSpec"))
    return None if spec.get("enableEngine") is False else spec.get("modelSpec")


def _releases(body: Mapping[str, Any], path: str) -> Iterator[_Values]:
    kind, spec = group_kind(body), as_map(body.get("spec"))
    if kind == RELEASE and _is_chart(body.get("chart")):
        beside = bool(body.get("valueYamlFiles"))
        yield _Values(path=join_path(path, "values"), values=body.get("values"), beside=beside)
    elif kind == HELM_RELEASE and _is_flux_chart(spec):
        at, beside = join_path(path, "spec.values"), bool(spec.get("valuesFrom"))
        yield _Values(path=at, values=spec.get("values"), beside=beside)
    elif kind == APPLICATION:
        sources = [("spec.source", spec.get("source"))]
        sources += [(f"spec.sources[{i}]", v) for i, v in enumerate(as_list(spec.get("sources")))]
        for at, source in sources:
            if _is_argo_chart(as_map(source)):
                yield _argo(as_map(as_map(source).get("helm")), join_path(path, f"{at}.helm"))


def _is_chart(value: object) -> bool:
    """Tell whether a chart's name, path or URL is that of vllm-stack."""
    if not isinstance(value, str) or is_unresolved(value):
        return False
    last = value.rstrip("/").rpartition("/")[2].partition(":")[0]
    return last == CHART or (last.startswith(f"{CHART}-") and last.endswith(".tgz"))


def _is_flux_chart(spec: Mapping[str, Any]) -> bool:
    named = as_map(as_map(spec.get("chart")).get("spec")).get("chart")
    return _is_chart(named) or _is_chart(as_map(spec.get("chartRef")).get("name"))


def _is_argo_chart(source: Mapping[str, Any]) -> bool:
    repository, place = source.get("repoURL"), source.get("path")
    if isinstance(repository, str) and isinstance(place, str):
        own = repository.removesuffix(".git").endswith(_GIT_PATH[0])
        if own and place.strip("./") == _GIT_PATH[1]:
            return True
    return _is_chart(source.get("chart")) or _is_chart(place)


def _argo(helm: Mapping[str, Any], path: str) -> _Values:
    """Read where Argo CD keeps values: an object wins over a text, and parameters over both."""
    names = [as_map(item).get("name") for item in as_list(helm.get("parameters"))]
    values, key = helm.get("valuesObject"), "valuesObject"
    if values is None:
        values, key = read_yaml_text(helm.get("values"), "values"), "values"
    if any(is_unresolved(name) or str(name).startswith(_MODELS) for name in names):
        values = Unknown("parameters change the models")
    return _Values(path=f"{path}.{key}", values=values, beside=bool(helm.get("valueFiles")))


def _engine(model: Model) -> EngineFacts:
    fields, name = model.fields, model.fields.get("name")
    replicas = as_count(_plain(fields.get("replicaCount")), "replicaCount", 1)
    many = model.ray
    pods: MaybeInt = 1
    if many is not False:
        workers = as_count(_plain(fields.get("replicaCount")), "replicaCount", 0)
        pods = workers if isinstance(workers, Unknown) else workers + 1
    if isinstance(many, Unknown):
        pods = many
    head = model.head if many is True else fields
    at = f"{model.path}.raySpec.headNode" if many is True else model.path
    worker = _pod(model, fields, model.path, ["ray", "start", "--address=head"])
    return EngineFacts(
        path=model.path,
        name=name if isinstance(name, str) and not is_unresolved(name) else "?",
        pods=pods,
        replicas=1 if many is True else replicas,
        entry=_pod(model, head, at, _command(model, ray=many is True)),
        worker=worker if many is True and pods != 1 else None,
    )


def _plain(value: object) -> object:
    return _LATE if isinstance(value, Unknown) else value


def _command(model: Model, *, ray: bool) -> list[str]:
    """Write the command that the chart makes of a model, as far as it counts here."""
    config = model.config
    url = _plain(model.fields.get("modelURL"))
    words = ["vllm", "serve", url if isinstance(url, str) else "/model"]
    words += ["--distributed-executor-backend", "ray"] if ray else []
    for key, flag in (_RAY_FLAGS if ray else _FLAGS).items():
        if key in config or config.get(key) is not None:
            words += [flag, go_text(_plain(config.get(key)))]
    extra = _plain(config.get("extraArgs"))
    if is_unresolved(extra) or is_unresolved(model.fields.get("vllmConfig")):
        return [*words, _LATE, _LATE]
    return [*words, *(go_text(item) for item in as_list(extra))]


def _pod(model: Model, asked: Mapping[str, Any], at: str, command: list[str]) -> PodFacts:
    """Read the pod that the chart makes: `resources` of its own, or what is requested."""
    fields = model.fields
    image = [_plain(fields.get(key)) for key in ("repository", "tag")]
    known = all(isinstance(part, str) for part in image)
    shm = "tensorParallelSize" in model.config
    container = {
        "name": "vllm",
        "command": command,
        "env": _plain(fields.get("env")),
        "resources": _plain(asked.get("resources")) or _requested(asked),
        **({"image": ":".join(map(str, image))} if known else {}),
        **({"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]} if shm else {}),  # noqa: S108 - NCCL's memory
    }
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    field = "resources" if asked.get("resources") else "requestGPU"
    pod = read_pod(
        {"spec": {"containers": [container], "volumes": volumes}},
        "",
        gpus_path=f"{at}.{field}",
        command_path=f"{model.path}.vllmConfig",
    )
    return fill_requests(_placed(pod, model))


def _requested(asked: Mapping[str, Any]) -> dict[str, Any]:
    kind, count = _plain(asked.get("requestGPUType")), _plain(asked.get("requestGPU"))
    name = "nvidia.com/gpu" if kind is None else str(kind)
    return {} if count is None else {"limits": {name: count}, "requests": {name: count}}


def _placed(pod: PodFacts, model: Model) -> PodFacts:
    """Give what was read of the container its places in the values."""
    if pod.own is None:
        return pod
    tokens = [
        replace(token, path=token.path.replace("spec.containers[0]", model.path, 1))
        for token in pod.own.tokens
    ]
    if looks_like_token(model.fields.get("hf_token")):
        at = f"{model.path}.hf_token"
        tokens.append(TokenFacts(path=at, kind=TokenKind.VALUE, variable="HF_TOKEN"))
    own = replace(pod.own, path=model.path, image_path=f"{model.path}.tag", tokens=tuple(tokens))
    return replace(pod, own=own)
