"""Reads a container's command: the engine that it starts, and its parallelism.

The only entry is `read_command`. It never raises: what cannot be read is Unknown, with the reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.bash.shared_state import Started
from kthena_components.core.engines.bash.syntax import Chain, Simple, Statement, Text, Word, parse
from kthena_components.core.engines.dialects import dialect_of, option_elsewhere
from kthena_components.core.engines.engine_search import Search
from kthena_components.core.engines.facts import Blocked, CommandFacts, Problem
from kthena_components.core.engines.files import Files
from kthena_components.core.engines.launchers import Ray
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import Dialect, understand
from kthena_components.core.engines.placeholders import (
    LATE_VARIABLES,
    Hidden,
    Scope,
    expand_kubernetes,
)
from kthena_components.core.engines.programs import (
    API_SERVER,
    SHELLS,
    Program,
    base_name,
    files_may_start_one,
    find_program,
    may_start_one,
    shell_operand,
)
from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.images import Image, installed_by, read_image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown

MAX_ITEM = 1 << 21
"""Maximum bytes of one argument on any Linux: 32 pages of 64 KiB (MAX_ARG_STRLEN in
include/uapi/linux/binfmts.h). With pages of 4 KiB it is 131072."""
_LONGEST_LINE = 256
_NOT_VALUES = frozenset(
    [
        *(
            "engine",
            "ends_before_engine",
            "hidden",
            "image",
            "missing_files",
            "network",
            "options",
            "problems",
            "ray_address",
        ),
        *("ray_blocks", "ray_cluster_size", "ray_ends", "ray_gpus", "ray_heads"),
        *("ray_port", "ray_role"),
        *("ray_script", "ray_written", "release", "slept", "where", "written"),
    ]
)
_VALUES = tuple(f.name for f in fields(CommandFacts) if f.name not in _NOT_VALUES)


def read_command(
    argv: Sequence[str],
    env: Mapping[str, MaybeText],
    *,
    files: Files = (),
    hidden: Hidden = (),
    image: str | None = None,
    folder: str | None = None,
    late_variables: Mapping[str, str] = LATE_VARIABLES,
) -> CommandFacts | None:
    """Read a container's command line.

    Args:
        argv: The container's command and args in one list. Items may contain outputs that only the
            deployment knows (`unknown.is_unresolved`): their values are Unknown.
        env: The container's variables, in the order in which Kubernetes sets them. Literal values
            are expanded, Unknown ones are not.
        files: Known files mounted in the container: config files and scripts.
        hidden: Other sources of variables.
        image: The container's image; its tag names the release. None: unknown.
        folder: The folder that it starts in (workingDir). None: the image's.
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
    of = None if image is None else _image(image, (" ".join(argv), *_scripts(files)))
    scope = Scope(env, late_variables, files=files, hidden=hidden, image=of)
    search = Search(scope)
    search.run(_expanded(argv, scope), folder)
    facts = _result(search)
    heads = facts is not None and facts.ray_role == "head" and runs_straight(argv)
    return None if facts is None else replace(facts, image=of, ray_heads=heads)


_TRANSFORMERS = regex(r"\b(?:install|add|--with)\b[^\n;&|]*(?:transformers|\s-r\b)")
"""A command that may install Transformers."""


def _image(name: str, texts: Sequence[object]) -> Image:
    """Read the name of an image, whose container runs some scripts."""
    image, installs = read_image(name), installed_by(texts)
    adds = any(isinstance(text, str) and _TRANSFORMERS.search(text) for text in texts)
    return replace(image, installs=installs, adds_transformers=adds) if installs or adds else image


def _scripts(files: Files) -> Iterator[object]:
    """Yield the contents of the mounted files."""
    for mount in files:
        yield from (text for _, text in mount.files)


def _expanded(argv: Sequence[str], scope: Scope) -> list[str]:
    return [
        item if "$" not in item and item.isascii() else expand_kubernetes(item, scope)
        for item in argv
    ]


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


def _result(search: Search) -> CommandFacts | None:
    """Combine the results; None if there are none."""
    log = search.shared.log
    engines = [found for found in log if found.engine is not None]
    if not (search.unread or any(found.starts for found in log)):
        return None
    ray = Ray()
    for found in log:
        ray = ray.join(found.ray) if found.ray else ray
    absent = (text for found in log if found.sure for text in found.absent)
    facts = _together(search, engines)
    strays = search.shared.strays
    where = {"ray_cluster_size": ray.where} if ray.where else {}
    return replace(
        facts,
        ray_role=ray.role,
        ray_cluster_size=ray.size,
        ray_gpus=ray.gpus,
        ray_address=ray.address,
        ray_written=ray.written,
        ray_port=ray.port,
        ray_blocks=_blocked(engines),
        slept=min((found.slept for found in log if found.engine), default=0),
        ray_ends=any(found.ends for found in log) and not engines,
        ends_before_engine=_ends_before_engine(search, engines),
        runs_others=search.shared.other_programs or (ray.role is None and any(f.ray for f in log)),
        ray_script=next((found.ray_script for found in log if found.ray_script), None),
        missing_files=tuple(dict.fromkeys(absent)),
        problems=ray.problems + facts.problems + tuple(map(_stray, dict.fromkeys(strays))),
        where=MappingProxyType({**where, **facts.where}),
        network=MappingProxyType(search.network),
    )


def _ends_before_engine(search: Search, engines: Sequence[Started]) -> bool:
    left = bool(engines) and all(found.outlives_script for found in engines)
    return left and not search.shared.traps


def _blocked(engines: Sequence[Started]) -> Blocked | Unknown | None:
    """Return what keeps an engine from being started; one that is not sure counts as possible."""
    held = [found.blocked for found in engines if found.blocked]
    sure = [found.blocked for found in engines if found.sure and isinstance(found.blocked, Blocked)]
    if len(held) < len(engines) or not held:
        return sure[0] if sure else None
    late = "its script may or may not start Ray with --block before it"
    return sure[0] if sure else Unknown(late)


def _stray(option: str) -> Problem:
    """Report an option that a script runs as a command."""
    text = f"the shell runs {option} as a separate command, so no engine gets it"
    remedy = "end the line before it with a backslash, without a blank or a comment behind it"
    return Problem(flag=option, text=text, remedy=remedy, hard=True, option=True)


def _together(search: Search, engines: Sequence[Started]) -> CommandFacts:
    """Put the engines together: what is stated of one is so of all."""
    read = [_softened(found) for found in engines]
    facts = read[0] if read else CommandFacts()
    if search.broken is not None:
        return _unreadable(search.broken, facts)
    if search.unread is not None:
        return _blank(facts, search.unread.because)
    if any(found.beside for found in engines):
        return _blank(facts, "the script starts several engines side by side")
    if engines and not any(found.sure for found in engines):
        return _blank(facts, "the script starts it on some paths only, and perhaps on none")
    if len(read) <= 1:
        return facts
    differs = f"the script starts {count_of(len(read), 'engine')} that differ in it"
    return merge(read, Unknown(differs))


def _softened(found: Started) -> CommandFacts:
    """Return what an engine's command line says; if it may not be started, it stops nothing."""
    facts = found.engine or CommandFacts()
    if found.sure or not facts.problems:
        return facts
    return replace(facts, problems=tuple(replace(p, hard=False) for p in facts.problems))


def merge(engines: Sequence[CommandFacts], differs: Unknown) -> CommandFacts:
    """Combine the command lines of a script's branches, or of the pods of one template.

    Args:
        engines: At least one.
        differs: Stands for a value in which they differ.
    """
    unlike: dict[str, Any] = {}
    for name in _VALUES:
        values = [getattr(facts, name) for facts in engines]
        if any(value != values[0] for value in values):
            unlike[name] = differs
    problems = tuple(dict.fromkeys(problem for facts in engines for problem in facts.problems))
    where = {name: text for name, text in engines[0].where.items() if name not in unlike}
    return replace(
        engines[0],
        hidden=next((facts.hidden for facts in engines if facts.hidden), None),
        problems=problems,
        options=_options(engines, differs),
        where=MappingProxyType(where),
        **unlike,
    )


def _options(engines: Sequence[CommandFacts], differs: Unknown) -> Mapping[str, Any]:
    """Join the options of several commands; one that differs between them is unknown."""
    missing = object()
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for facts in engines for name in facts.options):
        first, *rest = [facts.options.get(name, missing) for facts in engines]
        found[name] = first if all(value == first for value in rest) else differs
    return MappingProxyType(found)


def _blank(facts: CommandFacts, because: str) -> CommandFacts:
    """Return facts that contain only the engine and its problems."""
    unknown = Unknown(because)
    nothing: dict[str, Any] = dict.fromkeys(_VALUES, unknown)
    none: Mapping[str, Any] = MappingProxyType({})
    return replace(facts, hidden=unknown, options=none, where=none, **nothing)


def _unreadable(problem: Problem, facts: CommandFacts | None = None) -> CommandFacts:
    """Return facts in which everything is unknown, and the problem that is the reason."""
    return replace(_blank(facts or CommandFacts(), problem.text), problems=(problem,))


_ENGINE, _MODEL = "vllm", "--model"


def derived_entrypoint(image: str, args: Sequence[str]) -> tuple[str, ...]:
    """Return what an image of an unknown builder starts if its container has no command.

    It is vLLM's server if the image is named after it, and the arguments name a model and are
    options of vLLM without an exception, of any release. Otherwise nothing is known.
    """
    if _ENGINE not in base_name(read_image(image).repository):
        return ()
    flags = [word.partition("=")[0] for word in args if word.startswith("--")]
    if _MODEL not in flags or not args[0].startswith("--"):
        return ()
    dialect = dialect_of(release_for(_ENGINE, None))
    return API_SERVER if all(_is_known(flag, dialect) for flag in flags) else ()


def _is_known(flag: str, dialect: Dialect) -> bool:
    if understand(flag, dialect).option is not None:
        return True
    return option_elsewhere(flag, dialect) is not None


_LEAVES = frozenset({".", "source", "eval", "exit", "trap", "return"})
"""Words behind which a script may end before its last command, or do something else."""


def runs_straight(argv: Sequence[object]) -> bool:
    """Return whether a command line is a shell's with a string that has no branch and no exit."""
    words = [word for word in argv if isinstance(word, str)]
    if len(words) < len(argv) or not words or base_name(words[0]) not in SHELLS:
        return False
    at, is_text = shell_operand(words, 1)
    read = parse(words[at]) if is_text and at < len(words) else None
    if read is None or isinstance(read, Unknown):
        return False
    return all(_is_straight(statement) for statement, _ in read.items)


def _is_straight(statement: Statement) -> bool:
    if isinstance(statement, Chain):
        parts = (("&&", statement.first), *statement.rest)
        return all(mark == "&&" and _is_straight(part) for mark, part in parts)
    if not isinstance(statement, Simple):
        return False
    first = statement.words[0] if statement.words else ()
    return not statement.words or _names_program(first)


def _names_program(word: object) -> bool:
    """Return whether the first word of a command is a program's name as it stands, or `export`."""
    pieces: Word = word if isinstance(word, tuple) else ()
    text = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    whole = bool(pieces) and all(isinstance(piece, Text) for piece in pieces)
    return whole and text not in _LEAVES and not text.startswith("[") and text != "test"
