"""The rule hf-token-from-secret."""

from collections.abc import Iterator

from kthena_components.core.facts.container import (
    ContainerFacts,
    TokenFacts,
    TokenKind,
)
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding
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
