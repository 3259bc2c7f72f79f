"""Reads a container's command: the engine that it starts, and its parallelism.

The only entry is `read_command`. It never raises: what cannot be read is Unknown, with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.facts import CommandFacts, Problem
from kthena_components.core.engines.files import Files, read_file
from kthena_components.core.engines.lmdeploy import read_lmdeploy
from kthena_components.core.engines.placeholders import (
    LATE_VARIABLES,
    Hidden,
    Scope,
    expand_kubernetes,
)
from kthena_components.core.engines.programs import (
    MPI,
    RAY_SCRIPT_NAME,
    Program,
    Start,
    base_name,
    files_may_start_one,
    find_program,
    may_start_one,
    shell_operand,
)
from kthena_components.core.engines.ray import Ray, flag_value, read_ray, read_ray_script, read_size
from kthena_components.core.engines.script import read_script
from kthena_components.core.engines.sglang import read_sglang
from kthena_components.core.engines.tgi import read_tgi
from kthena_components.core.engines.trtllm import DYNAMO_DIALECT, read_trtllm
from kthena_components.core.engines.vllm import read_api_server, read_inside, read_vllm
from kthena_components.core.values.images import read_image
from kthena_components.core.values.unknown import MaybeText, Unknown

MAX_ITEM = 1 << 21
"""Maximum bytes of one argument on any Linux: 32 pages of 64 KiB (MAX_ARG_STRLEN in
include/uapi/linux/binfmts.h). With pages of 4 KiB it is 131072."""
_MAX_LEVEL = 8
_LONGEST_LINE = 256
_MAX_FILES = 16
"""Maximum number of mounted scripts read for one command: a script may start itself."""
_NOT_VALUES = frozenset(
    {
        "engine",
        "hidden",
        "missing_files",
        "options",
        "problems",
        "ray_cluster_size",
        "ray_gpus",
        "ray_role",
        "release",
    }
    | {"ray_script", "where"}
)
_VALUES = tuple(f.name for f in fields(CommandFacts) if f.name not in _NOT_VALUES)


def read_command(
    argv: Sequence[str],
    env: Mapping[str, MaybeText],
    *,
    files: Files = (),
    hidden: Hidden = (),
    image: str | None = None,
    late_variables: Mapping[str, str] = LATE_VARIABLES,
) -> CommandFacts | None:
    """Read a container's command line.

    Args:
        argv: The container's command and args in one list. Items may contain outputs that only the
            deployment knows (`known.is_late`): their values are Unknown.
        env: The container's variables, in the order in which Kubernetes sets them. Literal values
            are expanded, Unknown ones are not.
        files: Known files mounted in the container: config files and scripts.
        hidden: Other sources of variables.
        image: The container's image; its tag names the release. None: unknown.
        late_variables: Variables that a controller adds to the pod, each with the controller's
            name.

    Returns:
        None if, as far as can be read, neither an engine nor a Ray helper is started.
    """
    texts = [text for text in (*argv, *env.values()) if isinstance(text, str)]
    if not (
        any(map(may_start_one, texts)) or any(files_may_start_one(mount.files) for mount in files)
    ):
        return None
    longest = max(map(len, texts), default=0)
    if longest > MAX_ITEM:
        text = f"one item has {longest} characters, and no Linux accepts more than {MAX_ITEM}"
        return _unreadable(Problem(flag="", text=text, remedy="put it in a file", hard=True))
    of = None if image is None else read_image(image)
    search = _Search(Scope(env, late_variables, files=files, hidden=hidden, image=of))
    search.words([expand_kubernetes(item, search.scope) for item in argv])
    return search.result()


def unread_script(argv: Sequence[str], files: Files) -> Unknown | None:
    """Explain why the mounted script that a command runs cannot be read; else None."""
    start = find_program(argv)
    at = 0
    if start is not None and start.program is Program.SHELL:
        operand, is_text = shell_operand(argv, start.arguments)
        at = len(argv) if is_text else operand
    elif start is not None:
        return None
    text = Scope({}, files=files).file(argv[at]) if at < len(argv) else None
    if not isinstance(text, Unknown):
        return None
    return Unknown(f"the script {argv[at]} is not available: {text.because}")


def _is_shell_script(text: str) -> bool:
    """Return whether a shell runs a file: its first line is `#!/bin/bash` or no `#!` line."""
    first = text[:_LONGEST_LINE].partition("\n")[0]
    return "sh" in first if first.startswith("#!") else True


@dataclass(slots=True)
class _Search:
    """The findings so far in one container's command."""

    scope: Scope
    engines: list[CommandFacts] = field(default_factory=list)
    ray: Ray = field(default_factory=Ray)
    helpers: int = 0
    ray_script: str | None = None
    broken: Problem | None = None
    beside: bool = False
    """Whether several engines run in parallel."""
    background: bool = False
    """Whether an engine was started in the background."""
    level: int = 0
    files: int = 0

    def words(self, words: Sequence[str]) -> int:
        """Read one command; return the number of engines that it starts."""
        start = find_program(words)
        before = len(self.engines)
        if self.level > _MAX_LEVEL:
            self.scope.unread = Unknown(f"its shells are nested more than {_MAX_LEVEL} deep")
            return 0
        if start is None:
            self.mounted(words[1 if words[:1] == ["exec"] else 0 :])
            return len(self.engines) - before
        arguments = words[start.arguments :]
        if start.program is Program.SHELL:
            self.shell(arguments)
        elif start.program is Program.RAY_SCRIPT:
            self.helper(read_ray_script(arguments, self.scope))
            self.ray_script = self.ray_script or self.in_image(words[start.at])
        elif start.program is Program.RAY:
            self.helper(read_ray(arguments, self.scope))
            if "--" in arguments:
                self.level += 1
                self.words(arguments[arguments.index("--") + 1 :])
                self.level -= 1
        else:
            facts = _READERS[start.program](arguments, self.scope)
            self.engines.append(self.with_ranks(facts, words, start))
        return len(self.engines) - before

    def in_image(self, word: str) -> str | None:
        """Return a path if it is in the image: no known volume hides it."""
        path = self.scope.read(word)
        seen = isinstance(path, str) and read_file(self.scope.files, path) is None
        return path if isinstance(path, str) and seen else None

    def helper(self, ray: Ray) -> None:
        """Record a command that starts or joins a Ray cluster."""
        self.helpers += 1
        self.ray = self.ray.join(ray)

    def shell(self, words: Sequence[str]) -> None:
        """Read a shell's script, or the helper script that it runs."""
        at, is_text = shell_operand(words, 0)
        if at < len(words) and is_text:
            self.inside(words[at], words[at + 1 :])
        elif at < len(words) and base_name(words[at]) == RAY_SCRIPT_NAME:
            self.words(words[at:])
        else:
            self.mounted(words[at:])

    def mounted(self, words: Sequence[str]) -> None:
        """Read a mounted script, if the first word is one."""
        text = self.scope.file(words[0]) if words else None
        if not isinstance(text, str) or not _is_shell_script(text):
            return
        self.files += 1
        if self.files > _MAX_FILES:
            self.scope.unread = Unknown(f"it runs more than {_MAX_FILES} scripts")
            return
        self.inside(text, words)

    def inside(self, text: str, positional: Sequence[str]) -> None:
        """Read a script with its own parameters."""
        scope = self.scope
        outside = scope.positional, scope.in_shell
        scope.positional, scope.in_shell = tuple(positional), True
        self.level += 1
        self.script(text)
        self.level -= 1
        scope.positional, scope.in_shell = outside

    def script(self, text: str) -> None:
        """Read every command of a script."""
        commands, open_end = read_script(text, self.scope)
        for command in commands:
            # A nested script may start its engine in the background: that counts as one engine.
            running, self.background = self.background, False
            started = self.words(command.words)
            if started:
                again = command.background and command.looped
                self.beside = self.beside or running or again
                self.background = self.background or command.background
            else:
                self.background = running
        if open_end is not None:
            text = f"the script ends inside {open_end}, and the shell rejects it"
            self.broken = Problem(flag="-c", text=text, remedy="close it", hard=open_end.sure)

    def with_ranks(self, facts: CommandFacts, words: Sequence[str], start: Start) -> CommandFacts:
        """Add the number of processes that an MPI launcher starts before an engine."""
        launcher = words[: start.at]
        found = flag_value(launcher, ("-n", "-np", "--np", "--ntasks"))
        if not found or not any(base_name(word) in MPI for word in launcher):
            return facts
        ranks = read_size(found[0].partition(" ")[0], *found, self.scope)
        where = MappingProxyType({**facts.where, "mpi_ranks": ranks.where})
        problems = facts.problems + ranks.problems
        return replace(facts, mpi_ranks=ranks.size, where=where, problems=problems)

    def result(self) -> CommandFacts | None:
        """Combine the results; None if there are none."""
        unread = self.scope.unread
        if not (self.engines or self.helpers or unread):
            return None
        facts = self.engines[0] if self.engines else CommandFacts()
        if self.broken is not None:
            facts = _unreadable(self.broken, facts)
        elif unread is not None:
            facts = replace(_blank(facts, unread.because), hidden=unread)
        elif self.beside:
            facts = _blank(facts, "the script starts several engines side by side")
        elif len(self.engines) > 1:
            facts = _merge(self.engines)
        where = {"ray_cluster_size": self.ray.where} if self.ray.where else {}
        return replace(
            facts,
            ray_role=self.ray.role,
            ray_cluster_size=self.ray.size,
            ray_gpus=self.ray.gpus,
            ray_script=self.ray_script,
            missing_files=tuple(dict.fromkeys(self.scope.absent)),
            problems=self.ray.problems + facts.problems,
            where=MappingProxyType({**where, **facts.where}),
        )


_READERS: Mapping[Program, Callable[[Sequence[str], Scope], CommandFacts]] = {
    Program.DYNAMO_TRTLLM: partial(read_trtllm, dialect=DYNAMO_DIALECT),
    Program.HUGGINGFACESERVER: partial(read_inside, engine="huggingfaceserver"),
    Program.LMDEPLOY: read_lmdeploy,
    Program.SGLANG: partial(read_sglang, positional=True),
    Program.SGLANG_INSIDE: partial(read_sglang, inside=True),
    Program.SGLANG_LAUNCH_SERVER: read_sglang,
    Program.TGI: read_tgi,
    Program.TRTLLM: read_trtllm,
    Program.VLLM: read_vllm,
    Program.VLLM_API_SERVER: read_api_server,
    Program.VLLM_INSIDE: read_inside,
}


def _merge(engines: Sequence[CommandFacts]) -> CommandFacts:
    """Combine the engines of a script's branches: fields in which they differ are unknown."""
    unlike: dict[str, Any] = {}
    for name in _VALUES:
        values = [getattr(facts, name) for facts in engines]
        if any(value != values[0] for value in values):
            unlike[name] = Unknown(f"the script starts {len(engines)} engines that differ in it")
    problems = tuple(dict.fromkeys(problem for facts in engines for problem in facts.problems))
    return replace(engines[0], problems=problems, **unlike)


def _blank(facts: CommandFacts, because: str) -> CommandFacts:
    nothing: dict[str, Any] = dict.fromkeys(_VALUES, Unknown(because))
    return replace(facts, **nothing)


def _unreadable(problem: Problem, facts: CommandFacts | None = None) -> CommandFacts:
    """Return facts in which everything is unknown, and the problem that is the reason."""
    return replace(_blank(facts or CommandFacts(), problem.text), problems=(problem,))
