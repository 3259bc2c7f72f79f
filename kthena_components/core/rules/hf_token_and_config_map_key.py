"""Rules of what pods read of other objects: the token from a Secret, and keys of ConfigMaps."""

from collections.abc import Iterator

from kthena_components.core.facts.container import (
    ContainerFacts,
    TokenFacts,
    TokenKind,
)
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_pods import pods_of
from kthena_components.core.rules.support.messages import cannot_check, each_engine, title


@each_engine
def hf_token_from_secret(engine: EngineFacts) -> Iterator[Finding]:
    """A Hugging Face token comes from a Secret, never from the manifest itself.

    Everyone who can read the manifest, the repository or the state can use the token. Variables of
    huggingface_hub are recognised by name, other tokens by their format. No message contains the
    token. A text in place of a token, such as `<your token>`, is allowed.

    Pass: 1 variable HF_TOKEN with valueFrom.secretKeyRef; HF_TOKEN with the value HF_TOKEN.
    Fail: HF_TOKEN with a value or from a ConfigMap; a command line with hf_ and 34 more letters.
    Level: mandatory.
    Source: huggingface_hub/constants.py; Kubernetes documentation, Good practices for Secrets.
    """
    yield from dict.fromkeys(f for pod in pods_of(engine) for f in _tokens(engine, pod))


def _tokens(engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    for container in (*((pod.own,) if pod.own else ()), *pod.others):
        for token in container.tokens:
            yield _token(engine, container, token)
        if container.hidden_token is not None:
            hidden = container.hidden_token
            yield from cannot_check(engine, hidden, path=container.path)


def _token(engine: EngineFacts, container: ContainerFacts, token: TokenFacts) -> Finding:
    if token.kind is TokenKind.VALUE:
        seen = f"has {token.variable} in plain text"
        rest = ", and everyone who reads the manifest can use that token"
    elif token.kind is TokenKind.CONFIG_MAP:
        seen, rest = f"takes {token.variable} from a ConfigMap", ", which is not kept secret"
    else:
        where = "its command line" if token.variable is None else f"variable {token.variable}"
        seen = f"has a text in {where} that looks like a Hugging Face token (hf_…)"
        rest = ", and everyone who reads the manifest can use it"
    name = token.variable if token.kind is not TokenKind.PATTERN else "HF_TOKEN"
    return Finding(
        path=token.path,
        seen=f"{title(engine)}, container '{container.name}' {seen}{rest}",
        remedy=f"give {name} with valueFrom.secretKeyRef, and revoke this token",
    )


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
