"""What commands write that write the same wherever they run: `echo`, `printf` and a few others."""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from kthena_components.core.engines.bash import ansi
from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.files import path_of, text_of
from kthena_components.core.engines.bash.shell import Doubt, Flow
from kthena_components.core.engines.bash.state import FOLDER, Many, is_known
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.unknown import Unknown

_SPEC = re.compile(r"%(?:%|(-?0?[0-9]{0,3})([sdi]))")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LATE = Unknown("the output of a command is unknown")
_MOST_NUMBERS = 1000


def echo(call: Call) -> Flow:
    """Write words between blanks."""
    words, end, escapes = list(call.words[1:]), "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        if not call.shell.bash and words[0] != "-n":
            call.write(_LATE)
            return call.shell.done()
        end = "" if "n" in words[0] else end
        escapes = (
            (words[0].rfind("e") > words[0].rfind("E")) if re.search("[eE]", words[0]) else escapes
        )
        del words[0]
    text = " ".join(words)
    if any(isinstance(word, Many) for word in words) or ("\\" in text and not call.shell.bash):
        call.write(_LATE)
    elif escapes and "\\" in text:
        call.write(ansi.decode(text) + end if ansi.is_plain(text) and not has_gap(text) else _LATE)  # type: ignore[operator]
    else:
        call.write(text + end)
    return call.shell.done()


def printf(call: Call) -> Flow:
    """Write words in a format, or set a variable (`-v`)."""
    words = list(call.words[1:])
    if len(words) > 1 and re.fullmatch("-v.+", words[0], re.DOTALL):
        words[:1] = ["-v", words[0][2:]]
    if words[:1] == ["-v"] and len(words) > 1:
        target, words = words[1], words[2:]
        text = formatted(words[1:] if words[:1] == ["--"] else words)
        if not _NAME.fullmatch(target):
            call.shell.state.forget("printf sets a variable with an unknown name")
        elif text is None or not call.shell.bash:
            call.shell.state.assign(target, Unknown(f"printf sets {target} to an unknown value"))
        else:
            call.shell.state.assign(target, text)
        return call.shell.done(Doubt.OPEN if text is None else 0)
    text = formatted(words[1:] if words[:1] == ["--"] else words)
    call.write(_LATE if text is None else text)
    return call.shell.done(Doubt.OPEN if text is None else 0)


def formatted(words: Sequence[str]) -> str | None:
    """Write words in the format that is the first; None if the result is not known."""
    if not words or not is_known(words[0]) or any(isinstance(word, Many) for word in words):
        return None
    pattern, rest = words[0], list(words[1:])
    kinds = [match[2] for match in _SPEC.finditer(pattern) if match[2]]
    if _SPEC.sub("", pattern).count("%") or not ansi.is_plain(pattern):
        return None
    made: list[str] = []
    while True:
        piece = _once(pattern, rest)
        if piece is None:
            return None
        made.append(piece)
        del rest[: len(kinds)]
        if not rest or not kinds:
            return "".join(made)


def _once(pattern: str, words: Sequence[str]) -> str | None:
    values = iter(words)
    made, at = "", 0
    for match in _SPEC.finditer(pattern):
        made += ansi.decode(pattern[at : match.start()]) or ""
        at = match.end()
        if not match[2]:
            made += "%"
            continue
        value = next(values, "")
        if match[2] != "s":
            value = value or "0"
            if not _INTEGER.fullmatch(value):
                return None
        if match[1] and has_gap(value):
            return None
        width = match[1].lstrip("-0")
        if match[2] == "s":
            made += f"{value:{'<' if match[1].startswith('-') else '>'}{width}}" if width else value
        else:
            fill = "" if match[1].startswith("-") or not match[1].startswith("0") else "0"
            sign = "<" if match[1].startswith("-") else ">" if not fill else ""
            made += f"{int(value):{sign}{fill}{width}d}"
    return made + (ansi.decode(pattern[at:]) or "")


def pwd(call: Call) -> Flow:
    """Write the folder."""
    folder = call.shell.state.get(FOLDER)
    call.write(folder + "\n" if isinstance(folder, str) else _LATE)
    return call.shell.done()


def _cat(call: Call) -> str | None:
    if len(call.words) == 1:
        return call.stdin
    texts = [text_of(call.shell, path_of(call.shell, word)) for word in call.words[1:]]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if len(known) == len(texts) else None


def _basename(call: Call) -> str | None:
    if len(call.words) not in {2, 3} or not call.words[1] or call.words[1].startswith("-"):
        return None
    name = posixpath.basename(call.words[1].rstrip("/")) or "/"
    suffix = call.words[2] if len(call.words) > 2 else ""  # noqa: PLR2004 - it is the last word
    return (name.removesuffix(suffix) or name) + "\n"


def _dirname(call: Call) -> str | None:
    if len(call.words) != 2 or call.words[1].startswith("-"):  # noqa: PLR2004 - one path
        return None
    path = call.words[1].rstrip("/")
    head = path.rpartition("/")[0].rstrip("/")
    return (head or ("/" if call.words[1].startswith("/") else ".")) + "\n"


def _seq(call: Call) -> str | None:
    numbers = call.words[1:]
    if not 1 <= len(numbers) <= 3 or not all(map(_INTEGER.fullmatch, numbers)):  # noqa: PLR2004
        return None
    first, last = (1 if len(numbers) == 1 else int(numbers[0])), int(numbers[-1])
    step = int(numbers[1]) if len(numbers) == 3 else 1  # noqa: PLR2004 - first, step, last
    if not step or abs(last - first) // abs(step) > _MOST_NUMBERS:
        return None
    return "".join(f"{n}\n" for n in range(first, last + (1 if step > 0 else -1), step))


PROGRAMS: Mapping[str, Callable[[Call], str | None]] = {
    "basename": _basename,
    "cat": _cat,
    "dirname": _dirname,
    "seq": _seq,
}
"""Programs whose output is known where their words are."""
