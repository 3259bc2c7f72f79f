"""Parse a script: at once where it is plain words, with the grammar otherwise.

The grammar takes 25 ms to load, and most containers run one command without any syntax.
"""

from kthena_components.core.engines.bash.syntax import Block, Chain, Simple, Statement, Text
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_PLAIN = regex("(?:[A-Za-z0-9_./:@%+,= \ue000-\ue003;\n-]|&&)+")
_LATE = regex("[\ue000-\ue003]")
_WORDS = """
    - case coproc declare do done elif else esac export fi for function if in local readonly select
    then time typeset unset until while
"""
_NOT_PLAIN = frozenset(_WORDS.split())
LONGEST = 1 << 15
"""Characters of the longest script that is read."""


def parse(text: str) -> Block | Unknown:
    """Return a script's statements, or why they are not read."""
    if len(text) > LONGEST:
        return Unknown(f"its script has {len(text)} characters, of which {LONGEST} are read")
    plain = parse_plain(text)
    if plain is not None:
        return plain
    from kthena_components.core.engines.bash.tree import parse_all  # noqa: PLC0415 - see above

    return parse_all(text)


def parse_plain(text: str) -> Block | None:
    """Parse commands of plain words with `&&`, `;` and new lines between them; else None."""
    if not _PLAIN.fullmatch(text):
        return None
    found: list[tuple[Statement, bool]] = []
    for line in text.split("\n"):
        parts = line.split(";")
        if not parts[-1].strip(" "):
            parts.pop()  # an empty line, or a separator at the end of one
        for part in parts:
            chain = _chain(part)
            if chain is None:
                return None
            found.append((chain, False))
    return Block(tuple(found)) if found else None


def _chain(text: str) -> Statement | None:
    commands: list[Statement] = []
    for part in text.split("&&"):
        words = part.split()
        if not words or "=" in words[0] or words[0] in _NOT_PLAIN:
            return None
        plain = () if _LATE.search(part) else tuple(words)
        commands.append(Simple((), tuple((Text(w, quoted=False),) for w in words), (), plain))
    first, *rest = commands
    return Chain(first, tuple(("&&", one) for one in rest)) if rest else first
