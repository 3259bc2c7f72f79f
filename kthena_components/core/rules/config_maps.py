"""Whether what a pod takes from ConfigMaps is there."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.wording import title


def config_map_key_exists(facts: ServingFacts) -> Iterator[Finding]:
    """A key that a pod takes from a ConfigMap is in it, and so is the config file of its engine.

    A variable or a volume item whose key is missing keeps the container from starting; an engine
    whose config file is missing ends at once. ConfigMaps that are not among the objects, or whose
    data is not known yet, are not judged here: the rules that need their values say so.

    Pass: --config /etc/vllm/tp8.yaml on a volume of a ConfigMap with the 1 key tp8.yaml.
    Fail: the same with the 1 key tp8.yml; configMapKeyRef key TP8 in a ConfigMap with the key tp8.
    Level: advisory.
    Source: kubernetes pkg/kubelet/kubelet_pods.go makeEnvironmentVariables and
    pkg/volume/configmap/configmap.go MakePayload.
    """
    for engine in facts.engines:
        found = dict.fromkeys(
            pair for pod in (engine.entry, engine.worker) if pod for pair in _missing(pod)
        )
        for path, because in found:
            yield _finding(engine, path, because)


def _missing(pod: PodFacts) -> Iterator[tuple[str, str]]:
    for key in pod.missing:
        yield key.path, key.because
    for because in pod.command.missing_files if pod.command else ():
        yield pod.command_path, because


def _finding(engine: EngineFacts, path: str, because: str) -> Finding:
    return Finding(
        path=path,
        seen=f"{title(engine)} does not start as it is written, because {because}",
        remedy="add the key to the ConfigMap, or name one that it has",
        rule="config-map-key-exists",
        level=Level.ADVISORY,
    )
