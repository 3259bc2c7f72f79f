"""A launch of an engine, and the commands that start it. Each engine's module writes them."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version, write_version
from kthena_components.core.values.regex import regex

_WITH_POST = 4
_FOUR_NUMBERS_SINCE: Mapping[str, Version] = {"vllm": (0, 9)}
"""The first release whose fourth number is not a post-release: 0.8.5.post1, but 0.10.1.1."""
_REFERENCE = regex(r"\$\([A-Za-z_][-._A-Za-z0-9]*\)")
_PLAIN = regex(r"[A-Za-z0-9@%+=:,./_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How an engine shares its KV cache with another one."""

    role: str
    """prefill: it sends the cache. decode: it receives it. both: either, by request."""
    connector: str
    """What carries the cache: nixl, mooncake or lmcache."""
    port: int | None
    """First port on which the other engine asks for the cache. None: the engine's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One engine to start: its model, its parallelism and its pods."""

    kind: str
    """vllm, sglang or trtllm."""
    launcher: str
    """What connects the pods. vllm: ray or native. sglang: native. trtllm: mpi. No effect with
    one pod."""
    model: str
    """Name or path. May contain an output that only the deployment knows."""
    tensor: int
    """GPUs that share each layer."""
    pipeline: int
    """Stages that the layers are split into."""
    data: int
    """Full copies of the model, all pods together."""
    expert: bool
    """Whether expert parallelism is on: whole experts on GPUs, instead of slices of each."""
    pods: int
    """Pods of one engine, the entry included."""
    gpus_per_pod: int
    port: int
    """HTTP port of the entry."""
    extra_args: tuple[str, ...] = ()
    """Words for the engine's command line, as Kubernetes reads them: `$(NAME)` is a variable."""
    release: Version | None = None
    """The release that the image states. None: not stated, the newest is assumed."""
    transfer: Transfer | None = None
    """None: the engine keeps its KV cache to itself."""
    drain: int = 0
    """Seconds that requests may take to end after SIGTERM."""

    @property
    def copy(self) -> int:
        """GPUs of one copy of the model."""
        return self.tensor * self.pipeline

    def before(self, release: Version) -> bool:
        """Return whether the image states an older release than this one."""
        return self.release is not None and self.release < release


@dataclass(frozen=True, slots=True)
class Commands:
    """Container commands of one engine. Kubernetes still expands `$(NAME)` in them."""

    entry: tuple[str, ...]
    worker: tuple[str, ...] | None
    """None for a single pod. The same for every worker."""
    ports: tuple[tuple[str, int], ...]
    """Names and numbers of the entry's ports: http, then those that other pods connect to."""
    env: tuple[dict[str, Any], ...] = ()
    """Variables of every pod, as Kubernetes writes them."""


class Refusal(NamedTuple):
    """Something that a writer cannot express. The caller reports it before it writes."""

    field: str
    """Below the role's `engine`: `parallelism.data`."""
    seen: str
    remedy: str
    rule: str


def script(*words: str) -> str:
    """Write a command for `sh -c`.

    Words are quoted for the shell, except for Kubernetes references in them: the kubelet
    substitutes their values before the shell reads the script.
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word and _PLAIN.fullmatch(_REFERENCE.sub("", word)):
        return word
    return shlex.quote(word)


def port_clash(launch: Launch, number: int, purpose: str) -> list[Refusal]:
    """Reject an HTTP port that the engine's pods use among themselves."""
    if launch.pods == 1 or launch.port != number:
        return []
    seen = f"is {number}, which the pods of an engine use among themselves ({purpose})"
    return [Refusal("port", seen, "choose another port", "engine-launch")]


def release_name(kind: str, version: Version) -> str:
    """Write a release as its tag does: vLLM's (0, 8, 5, 1) is 0.8.5.post1; (0, 9, 0, 1) is not."""
    *front, last = version
    post = len(version) == _WITH_POST and version < _FOUR_NUMBERS_SINCE.get(kind, (version[0] + 1,))
    return f"{write_version(tuple(front))}.post{last}" if post else write_version(version)


class Since(NamedTuple):
    """The first release of an engine with an option, and the field of a launch that needs it."""

    release: Version
    field: str
    """Below the role's `engine`."""
    remedy: str
    """Remedy if the older release must stay. Empty: none."""


def missing_options(
    launch: Launch, commands: Commands, since: Mapping[str, Since], title: str, image: str
) -> list[Refusal]:
    """Report options that a release does not have yet: for each field the newest one.

    Args:
        commands: The commands that would be written for it.
        since: Options with their first releases.
        title: The engine's name, for messages.
        image: The repository of the engine's own image.
    """
    latest: dict[str, tuple[Version, str, Since]] = {}
    for option in _options(commands):
        needs = since.get(option)
        if needs is not None and launch.before(needs.release):
            found = (needs.release, option, needs)
            latest[needs.field] = max(latest.get(needs.field, found), found)
    return [_missing(launch, option, needs, title, image) for _, option, needs in latest.values()]


def _options(commands: Commands) -> Iterable[str]:
    words = (*commands.entry, *(commands.worker or ()))
    return sorted({part for word in words for part in word.split() if part.startswith("--")})


def _missing(launch: Launch, option: str, needs: Since, title: str, image: str) -> Refusal:
    """Refuse a launch that needs an option which the stated release does not have yet."""
    first = release_name(launch.kind, needs.release)
    stated = release_name(launch.kind, launch.release or needs.release)
    value = {
        "launcher": f"'{launch.launcher}'",
        "parallelism.data": str(launch.data),
        "parallelism.pipeline": str(launch.pipeline),
        "parallelism.expert": "true",
    }[needs.field]
    pods = f" over {count_of(launch.pods, 'pod')}" if launch.pods > 1 else ""
    seen = (
        f"is {value}{pods}, for which {title} needs {option}; it has that since {first}, and the "
        f"image states {stated}"
    )
    otherwise = f", or {needs.remedy}" if needs.remedy else ""
    return Refusal(needs.field, seen, f"use {image}:v{first} or later{otherwise}", "engine-launch")
