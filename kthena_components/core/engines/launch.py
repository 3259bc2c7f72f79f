"""What is to be started, and the command lines that start it. The writers are the engines'."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kthena_components.core.values.images import Version, write_version

_WITH_POST = 4
_FOUR_NUMBERS_SINCE: Mapping[str, Version] = {"vllm": (0, 9)}
"""Where a fourth number is no post-release any more: 0.8.5.post1, and 0.10.1.1."""
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
    release: Version | None = None
    """The engine's release that the image states. None: none is stated, so as the newest."""

    @property
    def copy(self) -> int:
        """GPUs that one copy of the model takes."""
        return self.tensor * self.pipeline

    def before(self, release: Version) -> bool:
        """Tell whether the image states an older release than this one."""
        return self.release is not None and self.release < release


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


def release_name(kind: str, version: Version) -> str:
    """Write a release as its tag does: vLLM's (0, 8, 5, 1) is 0.8.5.post1, and (0, 9, 0, 1) not."""
    *front, last = version
    post = len(version) == _WITH_POST and version < _FOUR_NUMBERS_SINCE.get(kind, (version[0] + 1,))
    return f"{write_version(tuple(front))}.post{last}" if post else write_version(version)


class Since(NamedTuple):
    """The first release of an engine that has an option, and what of a launch needs the option."""

    release: Version
    field: str
    """Below the role's `engine`."""
    remedy: str
    """What to do where an older release must stay. Empty: nothing."""


def missing_options(
    launch: Launch, commands: Commands, since: Mapping[str, Since], title: str, image: str
) -> list[Refusal]:
    """Refuse options that a release does not have yet: of each field the one that came last.

    Args:
        launch: what is to be started.
        commands: what would be written for it.
        since: options with the release that they came with.
        title: the engine's name in a message.
        image: the repository of the engine's own image.
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
    first = release_name(launch.kind, needs.release)
    stated = release_name(launch.kind, launch.release or needs.release)
    value = {
        "launcher": f"'{launch.launcher}'",
        "parallelism.data": str(launch.data),
        "parallelism.pipeline": str(launch.pipeline),
        "parallelism.expert": "true",
    }[needs.field]
    pods = f" over {launch.pods} pods" if launch.pods > 1 else ""
    seen = (
        f"is {value}{pods}, for which {title} needs {option}; it has that since {first}, and the "
        f"image states {stated}"
    )
    otherwise = f", or {needs.remedy}" if needs.remedy else ""
    return Refusal(needs.field, seen, f"use {image}:v{first} or later{otherwise}", "engine-launch")
