"""What is to be started, and the command lines that start it. The writers are the engines'."""

import re
import shlex
from dataclasses import dataclass
from typing import NamedTuple

_REFERENCE = re.compile(r"\$\([A-Za-z_][-._A-Za-z0-9]*\)")
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One engine to start: what it serves, how it is split, and the pods that it has."""

    kind: str
    """vllm or sglang."""
    launcher: str
    """Who joins the pods. vllm: ray or native. sglang: native. Of no effect with one pod."""
    model: str
    """Name or path. May hold an output that only the deployment knows."""
    tensor: int
    """GPUs that share each layer."""
    pipeline: int
    """Stages that the layers are split into."""
    data: int
    """Full copies of the model, all pods together."""
    expert: bool
    """Whether experts are spread over the GPUs instead of being split like other layers."""
    pods: int
    """Pods of one engine, the entry included."""
    gpus_per_pod: int
    port: int
    """HTTP port of the entry."""
    extra_args: tuple[str, ...] = ()
    """Words for the engine's command line, as Kubernetes reads them: `$(NAME)` is a variable."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Container commands for one engine. Kubernetes still expands `$(NAME)` in them."""

    entry: tuple[str, ...]
    worker: tuple[str, ...] | None
    """None when there is one pod only. The same for every worker."""
    ports: tuple[tuple[str, int], ...]
    """Name and number of the ports that the entry opens: http, then where the workers join."""


class Refusal(NamedTuple):
    """Something that a writer cannot express. The caller refuses it before it writes."""

    field: str
    """Below the role's `engine`: `parallelism.data`."""
    seen: str
    remedy: str
    rule: str


def script(*words: str) -> str:
    """Write a command for `sh -c`.

    A word is quoted for the shell, except for the Kubernetes references in it: the kubelet puts
    their values in before the shell reads the script.
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word and _PLAIN.fullmatch(_REFERENCE.sub("", word)):
        return word
    return shlex.quote(word)


def port_clash(launch: Launch, number: int, purpose: str) -> list[Refusal]:
    """Refuse an HTTP port that the engine's pods already meet at."""
    if launch.pods == 1 or launch.port != number:
        return []
    seen = f"is {number}, where the pods of an engine meet ({purpose})"
    return [Refusal("port", seen, "choose another port", "engine-launch")]
