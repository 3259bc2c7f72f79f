"""Shortens a comment to what its host accepts, and says what it leaves out.

It imports only the standard library, because the program with the token uses it.
"""

import re

_RESERVED = 300
"""Characters for the sentence that says what is left out."""
_OPEN, _CLOSED = "<details>", "</details>"
_CLOSE = f"\n\n{_CLOSED}"
_LONGEST_LINE = 4_000
_MORE = re.compile(r"- (\d{1,6}) more: ")


def fitting(text: str, most: int, log: str) -> str:
    """Return a text with at most `most` characters, and the number of omitted lines below it.

    It is cut between two lines. A very long line is cut at a space, so never inside an escape. Open
    <details> are closed.

    Args:
        text: Markdown.
        most: How many characters there may be, at least 1000.
        log: Where the whole text is, such as "the log of the job".
    """
    if len(text) <= most:
        return text
    lines = [_line(line) for line in text.split("\n")]
    room, kept = most - _RESERVED, 0
    for line in lines:
        room -= len(line) + 1 + len(_CLOSE) * line.startswith(_OPEN)
        if room < 0:
            break
        kept += 1
    shown = "\n".join(lines[:kept]).rstrip()
    return f"{closed(shown)}\n\n{_omitted(lines[kept:], log)}"


def closed(text: str) -> str:
    """Close the <details> of a text, so that they hide nothing below. Their tags begin lines."""
    depth = 0
    for line in text.split("\n"):
        if line.startswith(_OPEN):
            depth += 1
        elif line.startswith(_CLOSED):
            depth = max(depth - 1, 0)
    return f"{text}{_CLOSE * depth}"


def _line(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE].rpartition(' ')[0]} …"


def _omitted(lines: list[str], log: str) -> str:
    left, listed = sum(bool(line.strip()) for line in lines), sum(map(_listed, lines))
    these = "1 further line is" if left == 1 else f"{left} further lines are"
    with_ = {0: "", 1: ", with 1 finding or change"}.get(
        listed, f", with {listed} findings and changes"
    )
    return f"The comment is too long, so {these} not shown{with_}: see {log}."


def _listed(line: str) -> int:
    """Count what a line lists: one finding or change, or the number in `- 5 more: …`."""
    more = _MORE.match(line)
    return int(more[1]) if more else line.startswith("- ")
