"""What real shells hand to an engine, and what is read of the same script without running it."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kthena_components.core.engines import CommandFacts, Mount, command, engine_search
from kthena_components.core.engines.placeholders import Scope, has_gap
from kthena_components.core.engines.programs import Program
from kthena_components.core.values.unknown import Unknown
from tests.support.shell_forms import HIDDEN, LATE, NAMES
from tests.support.shell_scripts import Drawn

ENGINES = ("vllm", "python3")
_STUB = """#!/bin/sh
{ printf '%s\\0' "${0##*/}" "$@"; printf '\\1\\0'
  printf '%s\\0' "A=${A-unset}" "B=${B-unset}" "TP=${TP-unset}" "PP=${PP-unset}"; } > "$STUB_LOG/$$"
"""
_CHECK = '#!/bin/sh\nexit "$STUB_CHECK"\n'
_PROBE = '#!/bin/sh\necho "$STUB_PROBE"\n'
_SECONDS = 5
_GAVE_UP = re.compile(
    "syntax error|error token|arithmetic expression|Illegal number|ad substitution|not set|unbound"
)
"""What a shell says where it gives up the rest of a line, for a value that is hidden from us."""


@dataclass(frozen=True)
class Received:
    """What one start of an engine was given."""

    words: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Ran:
    """What became of a script in a real shell."""

    status: int | None
    """None: it took too long."""
    received: tuple[Received, ...]
    errors: str


def install(folder: Path) -> Path:
    """Write the engines that only note what they are given, and programs of which less is known."""
    found = folder / "bin"
    found.mkdir(parents=True)
    for name in ENGINES:
        (found / name).write_text(_STUB)
    (found / "check").write_text(_CHECK)
    (found / "probe").write_text(_PROBE)
    for path in found.iterdir():
        path.chmod(0o755)
    return found


def run(
    drawn: Drawn,
    shell: Sequence[str],
    folder: Path,
    stubs: Path,
    given: Mapping[str, str] = MappingProxyType({}),
) -> Ran:
    """Run a script in a real shell, with variables that only the pod has."""
    log, work = folder / "log", folder / "work"
    for made in (log, work):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    (work / "aa").touch()
    env = {
        **drawn.env,
        **given,
        HIDDEN: drawn.hidden,
        LATE: drawn.late,
        "PATH": f"{stubs}:/usr/bin:/bin",
        "HOME": str(work),
        "LC_ALL": "C.UTF-8",
        "STUB_LOG": str(log),
        "STUB_CHECK": str(int(drawn.fails)),
        "STUB_PROBE": drawn.hidden,
    }
    process = subprocess.Popen(
        [*shell, "-c", drawn.text, *drawn.words],
        cwd=work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    status: int | None = None
    try:
        _, errors = process.communicate(timeout=_SECONDS)
        status = process.returncode
    except subprocess.TimeoutExpired:
        errors = b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    received = tuple(_received(path) for path in sorted(log.iterdir()))
    return Ran(status, received, errors.decode(errors="replace"))


def _received(path: Path) -> Received:
    words, _, env = path.read_bytes().decode().partition("\1\0")
    pairs = (text.partition("=") for text in env.split("\0")[:-1])
    return Received(tuple(words.split("\0")[:-1]), {name: value for name, _, value in pairs})


@contextmanager
def recorded() -> Iterator[None]:
    """Let an engine's facts hold its words and its environment instead of what they mean."""
    readers = engine_search._READERS
    noted = dict(readers)

    def reader(name: str, *more: str) -> object:
        def read(words: Sequence[str], scope: Scope) -> CommandFacts:
            argv = (name, *more, *words)
            env = {key: scope.look_up(key) for key in NAMES}
            late = next((word for word in argv if has_gap(word)), None)
            whole: str | Unknown = "\0".join(argv) if late is None else Unknown("a gap")
            options = MappingProxyType({"words": argv, "env": env, "scope": scope})
            return CommandFacts(engine="vllm", model=whole, options=options)

        return read

    noted[Program.VLLM] = reader("vllm", "serve")  # type: ignore[assignment]
    server = reader("python3", "-m", "vllm.entrypoints.openai.api_server")
    noted[Program.VLLM_API_SERVER] = server  # type: ignore[assignment]
    engine_search._READERS = MappingProxyType(noted)
    try:
        yield
    finally:
        engine_search._READERS = readers


@dataclass
class Read:
    """What was read of a script."""

    unread: str
    """Why it was not, if it was not."""
    started: list[CommandFacts]
    sure: list[bool]
    facts: CommandFacts | None


def read(drawn: Drawn, shell: str, folder: str, hidden: Iterable[str] = (HIDDEN,)) -> Read:
    """Read a script as a container's command, of which some variables are hidden."""
    late = dict.fromkeys(hidden, Unknown("it is hidden"))
    env: dict[str, str | Unknown] = {**drawn.env, **late}
    files = (Mount(folder, tuple(drawn.files.items()), source="ConfigMap 'x'"),)
    reading = engine_search.Search(Scope(env, files=files))
    reading.run([shell, "-c", drawn.text, *drawn.words])
    told = reading.broken.text if reading.broken else ""
    engines = [found for found in reading.shared.log if found.engine]
    return Read(
        unread=reading.unread.because if reading.unread else told,
        started=[found.engine for found in engines if found.engine],
        sure=[found.sure for found in engines],
        facts=command._result(reading),
    )


def stated(found: Read) -> tuple[str, ...] | None:
    """Return the one command line that is stated, if one is."""
    model = found.facts.model if found.facts else None
    return tuple(model.split("\0")) if isinstance(model, str) and not found.unread else None


_GAP = re.compile("\ue002[0-9]+\ue003|\ue000[0-9]+\ue001")


def fits(written: Sequence[str], received: Sequence[str]) -> bool:
    """Return whether words with gaps can be what an engine was given.

    A gap in quotes is a part of one word; outside them it may be many words or none.
    """
    pattern = "".join(_word(word) for word in written)
    return re.fullmatch(pattern, "".join(f"{word}\0" for word in received), re.DOTALL) is not None


def _word(word: str) -> str:
    from kthena_components.core.engines.bash.shell_state import Many  # noqa: PLC0415

    if isinstance(word, Many):
        # As many words as it likes, and what is known of it may be split as well.
        return r"(?:[^\x00]*\x00)*?"
    parts = [re.escape(part) for part in _GAP.split(word)]
    return r"[^\x00]*".join(parts) + r"\x00"


def faults(drawn: Drawn, found: Read, ran: Ran) -> list[str]:
    """Say what was read that is not so."""
    if found.unread or ran.status is None or _GAVE_UP.search(ran.errors):
        return []
    told: list[str] = []
    whole = stated(found)
    for one in ran.received:
        if whole is not None and one.words != whole:
            told.append(f"stated {whole}, and it was given {one.words}")
        if not any(_same(facts, one) for facts in found.started):
            told.append(f"nothing that was read fits {one.words} with {dict(one.env)}")
    sure = any(found.sure) and LATE not in drawn.text + "".join(drawn.files.values())
    failed = drawn.fails or "No such file" in ran.errors
    if sure and not ran.received and ran.status == 0 and not failed:
        told.append(f"an engine is surely started, and none was (status {ran.status})")
    return told


def _same(facts: CommandFacts, one: Received) -> bool:
    if not fits(facts.options["words"], one.words):
        return False
    for name, value in facts.options["env"].items():
        given = one.env[name]
        if isinstance(value, str) and not has_gap(value) and value != given:
            return False
        if value is None and given != "unset":
            return False
    return True
