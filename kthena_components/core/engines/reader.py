"""Read a container's command: which engine it starts, and how it is split over GPUs.

The one entry is `read_command`. It never raises: what cannot be read is Unknown, and says why.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.facts import CommandFacts, Problem
from kthena_components.core.engines.programs import (
    MPI,
    RAY_SCRIPT_NAME,
    Program,
    Start,
    base_name,
    find_program,
    may_start_one,
    shell_operand,
)
from kthena_components.core.engines.ray import (
    Ray,
    flag_value,
    read_ray,
    read_ray_script,
    read_size,
)
from kthena_components.core.engines.script import read_script
from kthena_components.core.engines.sglang import read_sglang
from kthena_components.core.engines.trtllm import DYNAMO_DIALECT, read_trtllm
from kthena_components.core.engines.vllm import read_vllm
from kthena_components.core.engines.words import LATE_VARIABLES, Scope, expand_kubernetes
from kthena_components.core.known import MaybeText, Unknown

MAX_ITEM = 1 << 21
"""Bytes of the longest argument that any Linux takes: 32 pages of 64 KiB (MAX_ARG_STRLEN in
include/uapi/linux/binfmts.h). With pages of 4 KiB it is 131072."""
_MAX_LEVEL = 8
_NOT_VALUES = frozenset({"engine", "problems", "where", "ray_role", "ray_cluster_size"})
_VALUES = tuple(f.name for f in fields(CommandFacts) if f.name not in _NOT_VALUES)


def image_entrypoint(image: str) -> tuple[str, ...]:
    """Give what an image starts when the container has args but no command.

    Only vLLM's server images start an engine by themselves (vllm docker/Dockerfile). Put it before
    the args for `read_command`.
    """
    name = base_name(image.partition("@")[0]).partition(":")[0]
    return ("vllm", "serve") if name.startswith("vllm-openai") else ()


def read_command(
    argv: Sequence[str],
    env: Mapping[str, MaybeText],
    *,
    late_variables: Mapping[str, str] = LATE_VARIABLES,
) -> CommandFacts | None:
    """Read what a container's command line asks of an engine.

    Args:
        argv: The container's command and args, in one list. An item may hold an output that only
            the deployment knows (`known.is_late`): the value that it stands in is Unknown.
        env: The container's variables. A literal value is expanded, an Unknown one is not.
        late_variables: Variables that a controller adds to the pod, and which one does.

    Returns:
        None when neither an engine nor a Ray helper is started, for all that can be seen.
    """
    texts = [text for text in (*argv, *env.values()) if isinstance(text, str)]
    if not any(may_start_one(text) for text in texts):
        return None
    longest = max(map(len, texts))
    if longest > MAX_ITEM:
        text = f"one item has {longest} characters, and no Linux takes more than {MAX_ITEM}"
        return _unreadable(Problem(flag="", text=text, remedy="put it in a file", hard=True))
    search = _Search(Scope(env, late_variables))
    search.words([expand_kubernetes(item, search.scope) for item in argv])
    return search.result()


@dataclass(slots=True)
class _Search:
    """What has been found so far in one container's command."""

    scope: Scope
    engines: list[CommandFacts] = field(default_factory=list)
    ray: Ray = field(default_factory=Ray)
    helpers: int = 0
    broken: Problem | None = None
    beside: bool = False
    """Whether engines run side by side."""
    background: bool = False
    """Whether an engine was started in the background."""
    level: int = 0

    def words(self, words: Sequence[str]) -> int:
        """Read one command; give how many engines it starts."""
        start = find_program(words)
        if start is None or self.level > _MAX_LEVEL:
            return 0
        arguments = words[start.arguments :]
        before = len(self.engines)
        if start.program is Program.SHELL:
            self.shell(arguments)
        elif start.program is Program.RAY_SCRIPT:
            self.helper(read_ray_script(arguments, self.scope))
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

    def helper(self, ray: Ray) -> None:
        """Note a command that starts or joins a Ray cluster."""
        self.helpers += 1
        self.ray = self.ray.join(ray)

    def shell(self, words: Sequence[str]) -> None:
        """Read a shell's script, or the helper script that it runs."""
        at, is_text = shell_operand(words, 0)
        if at < len(words) and is_text:
            scope = self.scope
            outside = scope.positional, scope.in_shell
            scope.positional, scope.in_shell = tuple(words[at + 1 :]), True
            self.level += 1
            self.script(words[at])
            self.level -= 1
            scope.positional, scope.in_shell = outside
        elif at < len(words) and base_name(words[at]) == RAY_SCRIPT_NAME:
            self.words(words[at:])

    def script(self, text: str) -> None:
        """Read every command of a script."""
        commands, open_end = read_script(text, self.scope)
        for command in commands:
            # A script inside this one may start its engine in the background: that is one engine.
            running, self.background = self.background, False
            started = self.words(command.words)
            if started:
                again = command.background and command.looped
                self.beside = self.beside or running or again
                self.background = self.background or command.background
            else:
                self.background = running
        if open_end is not None:
            text = f"the script ends inside {open_end}, and the shell refuses it"
            self.broken = Problem(flag="-c", text=text, remedy="close it", hard=open_end.sure)

    def with_ranks(self, facts: CommandFacts, words: Sequence[str], start: Start) -> CommandFacts:
        """Add the number of processes that an MPI launcher in front of an engine starts."""
        launcher = words[: start.at]
        found = flag_value(launcher, ("-n", "-np", "--np", "--ntasks"))
        if not found or not any(base_name(word) in MPI for word in launcher):
            return facts
        ranks = read_size(found[0].partition(" ")[0], *found, self.scope)
        where = MappingProxyType({**facts.where, "mpi_ranks": ranks.where})
        problems = facts.problems + ranks.problems
        return replace(facts, mpi_ranks=ranks.size, where=where, problems=problems)

    def result(self) -> CommandFacts | None:
        """Put together what was found; None when that is nothing."""
        if not (self.engines or self.helpers):
            return None
        facts = self.engines[0] if self.engines else CommandFacts()
        if self.broken is not None:
            facts = _unreadable(self.broken, facts)
        elif self.beside:
            facts = _blank(facts, "the script starts several engines side by side")
        elif len(self.engines) > 1:
            facts = _merge(self.engines)
        where = {"ray_cluster_size": self.ray.where} if self.ray.where else {}
        return replace(
            facts,
            ray_role=self.ray.role,
            ray_cluster_size=self.ray.size,
            problems=self.ray.problems + facts.problems,
            where=MappingProxyType({**where, **facts.where}),
        )


_READERS: Mapping[Program, Callable[[Sequence[str], Scope], CommandFacts]] = {
    Program.DYNAMO_TRTLLM: partial(read_trtllm, dialect=DYNAMO_DIALECT),
    Program.HUGGINGFACESERVER: partial(read_vllm, engine="huggingfaceserver", positional=False),
    Program.SGLANG: partial(read_sglang, positional=True),
    Program.SGLANG_FLAGS_ONLY: read_sglang,
    Program.TRTLLM: read_trtllm,
    Program.VLLM: read_vllm,
    Program.VLLM_FLAGS_ONLY: partial(read_vllm, positional=False),
}


def _merge(engines: Sequence[CommandFacts]) -> CommandFacts:
    """Join the engines of one script's branches: where they differ, nothing is known."""
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
    """Give facts of which nothing is known, and the problem that is why."""
    return replace(_blank(facts or CommandFacts(), problem.text), problems=(problem,))
