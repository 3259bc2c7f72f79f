"""Checks that ConfigMaps have the keys that pods use."""

from collections.abc import Iterator

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.messages import title


def config_map_key_exists(facts: ServingFacts) -> Iterator[Finding]:
    """A ConfigMap has every key that a pod uses, including its engine's config file.

    A missing key of a variable or a volume item keeps the container from starting; an engine
    without its config file exits at once. ConfigMaps that are not among the objects, or whose data
    is not known yet, are not checked here: the rules that need their values report it.

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
        level=Level.ADVISORY,
    )
