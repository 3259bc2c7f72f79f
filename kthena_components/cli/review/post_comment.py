"""Post the comment on a pull request: edit our earlier comment, or create the first one.

Call it as a module, with GITHUB_TOKEN or GITLAB_TOKEN in the environment:

  python -I -m kthena_components.cli.review.post_comment github|gitlab NUMBER COMMIT JUDGE COMMENT

JUDGE and COMMENT are the files that `review` has written for COMMIT, with and without --no-preview.

This program has the token, so the text of COMMENT is all that it uses from the pull request. A
program of the pull request may have written that text. Therefore JUDGE comes first, because no such
program ran where it was written. It also removes everything that could ping somebody, act as a
link, or hide text. It imports only the standard library.

The exit status is 0 if the comment has both results, and 1 if not: then one sentence says why, also
in the comment if the host takes one.
"""

import os
import re
import stat
import sys
from contextlib import suppress

from kthena_components.cli.review.hosts import HostError, github, gitlab
from kthena_components.cli.review.references import APART, unlinked
from kthena_components.cli.review.references import MARK as BREAK

MARK = "<!-- kthena-components review -->"
"""The last line of the comment. It tells our comment from others by the same author."""
MOST_CHARACTERS = {"github": 65_536, "gitlab": 1_000_000}
"""How many characters a comment may have.

Source: the message of GitHub's API, "body is too long (maximum is 65536 characters)"; it takes
262,144 bytes at present, which 65,536 characters never exceed. docs.gitlab.com, Application limits,
size of comments and descriptions.
"""
_MOST_READ = 4 * 2**20
_LOG = "the log of the job"
ACTION = re.compile(r"^(?=[ \t]*(?:/|::))", re.MULTILINE)
"""The beginning of a line that GitLab would read as a quick action, such as `/label`, or replace by
a file, such as `::include`."""
SYNTAX = re.compile(r"\](?=[(:\[])|``(?=`)")
"""The middle of a link, and the beginning of a block of code, which a host may draw as a diagram or
a formula with links."""
BROKEN = re.compile(rf"(?<!\\)\\*{APART}")
"""Syntax that is broken already. A backslash before it would show it, and #8203 is a reference."""
REFERENCE = re.compile(r"&(?!(?:amp|lt|gt);)")
FOLD = re.compile(r"<details>(?:<summary>[^<>]*</summary>)?|</details>")
"""A whole line with the only tags that a comment keeps. Elsewhere, such as in code, a host may not
read a tag that seems to close one."""
TITLE = re.compile(r"[A-Z][a-z ]+:")
OUTDATED = f"**This review is out of date.** The host did not take a newer one: see {_LOG}."
USAGE = "usage: post_comment github|gitlab NUMBER COMMIT JUDGE COMMENT"


def sealed(text: str, most: int = MOST_CHARACTERS["github"], last: str = "") -> str:
    """Remove links, mentions, images, and all tags except lines of <details>, from a string.

    Args:
        text: Markdown of any length.
        most: How many characters the result may have.
        last: A line below the text, which is never cut off.
    """
    end = "\n\n".join(["", *filter(None, [_unlinked(last)]), f"{MARK}\n"])
    return f"{fitting(_unlinked(text), most - len(end), _LOG)}{end}"


def _unlinked(text: str) -> str:
    """Remove from a string all that Markdown of GitHub or GitLab would make active."""
    # First of all, so that nothing that is removed hides a backslash before APART, and no BREAK is
    # the text's own.
    shown = "".join(char for char in text if char.isprintable() or char == "\n")
    shown = BROKEN.sub(BREAK, shown.replace(MARK, "").rstrip())
    shown = REFERENCE.sub("&amp;", shown.replace("##[", "## ["))
    lines = (x if FOLD.fullmatch(x) else x.replace("<", "&lt;") for x in shown.split("\n"))
    shown = "\n".join(lines)
    shown = ACTION.sub(BREAK, SYNTAX.sub(rf"\g<0>{BREAK}", shown))
    return closed(unlinked(shown).replace(BREAK, APART).rstrip())


def put_together(judge: str, comment: str) -> str:
    """Join the result of the job `judge` and the lines of the comment that it does not have.

    A title, such as `Mandatory:`, stays in the comment if a line below it does.
    """
    said = judge.replace(MARK, "").strip()
    if not said:
        return comment
    lines = set(filter(None, said.splitlines()))
    titles = {line for line in lines if TITLE.fullmatch(line)}
    known = lines - titles
    more: list[str] = []
    for block in comment.split("\n\n"):
        left = [line for line in block.splitlines() if line not in known]
        if left or not block:
            more.append("\n".join(left))
        elif more and more[-1] in titles:
            more.pop()
    below = "\n\n".join(more).strip()
    return f"{said}\n\n{below}"


def read(path: str) -> str | None:
    """Read a regular file. Return None for anything else, and for a file without a string.

    A link could point to this process's token, and reading a pipe could block forever.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        return None
    with os.fdopen(opened, encoding="utf-8", errors="replace") as file:
        text, more = file.read(_MOST_READ), file.read(1)
    rest = "\n\nThe rest of the file is not shown, because it is too large." if more else ""
    return f"{text}{rest}" if text.strip() else None


def written(judge: str | None, comment: str | None) -> tuple[str, list[str]]:
    """Return the text of the comment, and what is missing in it."""
    results = {"checks of the branch": judge, "previews": comment}
    missing = [f"the {name} have no result" for name, text in results.items() if text is None]
    first = [f"**Not checked:** {reason}: see {_LOG}." for reason in missing]
    return "\n\n".join([*first, put_together(judge or "", comment or "")]), missing


def main(arguments: list[str]) -> int:
    """Post one comment."""
    try:
        kind, number, commit, judge, comment = arguments
        host = {"github": github, "gitlab": gitlab}[kind](int(number))
    except (KeyError, ValueError) as error:
        needs = "with the variables of the host's pipeline"
        sys.stderr.write(f"{USAGE}, {needs}: {error!r}\n")
        return 2
    text, missing = written(read(judge), read(comment))
    about = f"This is the review of commit {commit[:12]}."
    try:
        host.put(sealed(text, MOST_CHARACTERS[kind], about), MARK)
    except HostError as error:
        sys.stderr.write(f"the comment is not written: {error}\n")
        with suppress(HostError):
            host.put(sealed(f"{OUTDATED}", last=f"It was to be of commit {commit[:12]}."), MARK)
        return 1
    for reason in missing:
        sys.stderr.write(f"{reason}\n")
    return 1 if missing else 0


# Shortens a comment to what its host accepts, and says what it leaves out.
#
# It imports only the standard library, because the program with the token uses it.


_RESERVED = 300
"""Characters for the sentence that says what is left out."""
_OPEN, _CLOSED = "<details>", "</details>"
_CLOSE = f"\n\n{_CLOSED}"
_LONGEST_LINE = 4_000
_MORE = re.compile(r"- (\d{1,6}) more: ")


def fitting(text: str, most: int, log: str) -> str:
    """Return a string with at most `most` characters, and the number of omitted lines below it.

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
    """Close the <details> of a string, so that they hide nothing below. Their tags begin lines."""
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
