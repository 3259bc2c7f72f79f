"""What rules about startup share: images and releases of engines, and what they reject."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.messages import part_of_engine, title
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Image, Version, read_image
from kthena_components.core.values.unknown import Unknown

ALWAYS = Level.MANDATORY
"""The level if every release with the options rejects it."""


def since(command: CommandFacts, first: Version, before: Version | None = None) -> Level | None:
    """Return the level of what some releases reject, None if the command's release does not.

    Args:
        command: The command line, with the release by which it is read.
        first: The first release that rejects it.
        before: The first release that no longer does. None: the newest one does.
    """
    release = command.release
    if release is None or release.version < first:
        return None
    if before is not None and release.version >= before:
        return None
    return Level.MANDATORY if release.sure else Level.ADVISORY


@dataclass(frozen=True, slots=True)
class Start:
    """One engine and its command line, while a rule checks it."""

    engine: EngineFacts
    command: CommandFacts
    pod: PodFacts | None = None
    """The pod with the command line. None: the entry."""

    @property
    def product(self) -> str:
        """The engine and its release, for messages: vLLM 0.26.0."""
        if self.command.release is not None:
            return self.command.release.title
        return TITLES.get(self.command.engine or "", "the engine")

    def since(self, first: Version, before: Version | None = None) -> Level | None:
        """Return the level of what some releases reject."""
        return since(self.command, first, before)

    def option(self, *names: str) -> Any:
        """Return the value of an option, by any of its spellings.

        None: not stated. Unknown: stated and not readable, or stated where it cannot be read.
        """
        stated = self.command.options
        return next((stated[name] for name in names if name in stated), self.command.hidden)

    def states(self, field: str) -> bool:
        """Return whether the command line is known to state a field of CommandFacts."""
        return field in self.command.where

    def is_on(self, *names: str) -> bool | Unknown:
        """Return whether a switch is on; without the flag it is off."""
        value = self.option(*names)
        return value if isinstance(value, Unknown) else value is True

    def number(self, *names: str) -> int | None:
        """Return an option's number; None if it is not stated or unknown."""
        value = self.option(*names)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def hidden(self) -> bool:
        """Whether options may be set where they are not read: in a config file or a variable."""
        return self.command.hidden is not None

    def refused(self, seen: str, remedy: str, level: Level = ALWAYS) -> Iterator[Finding]:
        """Report what the engine rejects; if advisory, with the release that does."""
        release = self.command.release
        note = release.note if release is not None and level is Level.ADVISORY else ""
        yield Finding(
            path=(self.pod or self.engine.entry).command_path,
            seen=f"{title(self.engine)} {seen}{note}",
            remedy=remedy,
            level=level,
        )


def starts(facts: ServingFacts, *engines: str) -> Iterator[Start]:
    """Return the engines of some kinds that a command line starts."""
    for engine in facts.engines:
        command = engine.entry.command
        if command is not None and command.engine in engines:
            yield Start(engine, command)


def all_starts(facts: ServingFacts, *engines: str) -> Iterator[Start]:
    """Return also what workers start, for options that may differ between the pods of an engine."""
    for start in starts(facts, *engines):
        yield start
        worker = start.engine.worker
        command = None if worker is None else worker.command
        if command is not None and command.engine in engines:
            yield Start(start.engine, command, worker)


def each_start(
    *engines: str,
) -> Callable[[Callable[[Start], Iterable[Finding]]], Callable[[ServingFacts], Iterator[Finding]]]:
    """Make a rule that checks each start of some kinds of engines."""

    def of(
        check: Callable[[Start], Iterable[Finding]],
    ) -> Callable[[ServingFacts], Iterator[Finding]]:
        part = part_of_engine(check)

        @wraps(check)
        def rule(facts: ServingFacts) -> Iterator[Finding]:
            for start in starts(facts, *engines):
                yield from part(start)

        return rule

    return of


POSITIVE = (0, 11, 1)
"""Release of vLLM from which these numbers must be positive."""
"""The first vLLM that rejects sizes and shares of 0 and less."""


# The images of engines: their releases, and those for AMD.


def image_of(pod: PodFacts) -> Image | None:
    """Return the image of the container that starts a pod's engine; None if unknown."""
    name = pod.own.image if pod.own else None
    return read_image(name) if isinstance(name, str) else None


def sglang_for_amd(pod: PodFacts) -> bool:
    """Return whether a pod has SGLang's own image for AMD.

    It sets SGLANG_USE_AITER and SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN (docker/rocm.Dockerfile).
    """
    image = image_of(pod)
    return image is not None and image.engine == "sglang" and "rocm" in (image.tag or "")


def release_of(engine: EngineFacts) -> Version | None:
    """Return the release of vLLM that an engine's image states."""
    image = image_of(engine.entry)
    return image.vllm_version if image else None
