#!/usr/bin/env python3
"""Put the comment on a pull request: edit our own note, or write the first one.

  GITHUB_TOKEN=… ci/comment.py github NUMBER judge.md comment.md
  GITLAB_TOKEN=… ci/comment.py gitlab NUMBER judge.md comment.md

It runs where the token is, and takes nothing from the pull request but the text of comment.md. A
program of the pull request may have written that text. So what judge.md says, which was written
where no such program runs, comes first, and whatever could ping somebody, lead anywhere or hide is
taken out once more. It needs nothing but Python.
"""

import json
import os
import re
import stat
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "<!-- kthena-components review -->"
MOST_CHARACTERS = 65_000
"""GitHub takes 65,536 in a comment, GitLab more."""
PAGE, MOST_PAGES = 100, 50
SECONDS = 60
APART = "&#8203;"
"""A space without a width. Behind a backslash or a character reference a mention still is one."""
LINKS = re.compile(
    r"@(?=\S)(?!&#8203;)|:(?=//)|www(?=\.)|\](?=[(:\[])|(?<!&)[#!$%~^](?=[\w\"])|GH-(?=\d)"
    r"|\[(?=\w+:)|(?<!\w)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{4}(?=[0-9a-f]{3,36}(?!\w))",
    re.IGNORECASE,
)
"""What begins a link, a mention or a reference, before what makes it one."""
ACTION = re.compile(r"^(?=[ \t]*/)", re.MULTILINE)
"""Where GitLab would take a line for a quick action, such as `/label`."""
REFERENCE = re.compile(r"&(?!(?:amp|lt|gt|#8203);)")
TAG = re.compile(r"<(?!/?(?:details|summary)>)")
Note = Mapping[str, Any]


def sealed(text: str) -> str:
    """Give a text in which nothing is a link, a mention, an image or a tag but <details>."""
    text = text.replace(MARK, "")[:MOST_CHARACTERS]
    shown = "".join(char for char in text if char.isprintable() or char == "\n")
    shown = TAG.sub("&lt;", REFERENCE.sub("&amp;", shown.replace("##[", "## [")))
    shown = LINKS.sub(rf"\g<0>{APART}", ACTION.sub(APART, shown.replace("\\@", "@")))
    return f"{shown.rstrip()}\n\n{MARK}\n"


def put_together(judge: str, comment: str) -> str:
    """Give all that the judge says, and below it what the comment says beside that."""
    said = judge.replace(MARK, "").strip()
    known = set(said.splitlines()) - {""}
    more = "\n".join(line for line in comment.splitlines() if line not in known)
    return f"{said}\n\n{more.strip()}" if said else comment


@dataclass(frozen=True)
class Host:
    """The interface of a host of pull requests, as far as notes go."""

    header: tuple[str, str]
    notes: str
    """Address of all notes of the pull request."""
    note: str
    """Address of one of them, before its number."""
    method: str
    """How one is changed."""
    author: tuple[str, str, object]
    """Where a note says who wrote it, and who we are."""

    def put(self, text: str) -> None:
        """Edit the note that an earlier run wrote, and nobody else's."""
        own = next((note["id"] for note in self._all() if self._is_own(note)), None)
        if own is None:
            ask(self.header, "POST", self.notes, {"body": text})
        else:
            ask(self.header, self.method, f"{self.note}/{own}", {"body": text})

    def _all(self) -> Iterator[Note]:
        for page in range(1, MOST_PAGES + 1):
            found = ask(self.header, "GET", f"{self.notes}?per_page={PAGE}&page={page}")
            yield from found
            if len(found) < PAGE:
                return

    def _is_own(self, note: Note) -> bool:
        who, key, we = self.author
        return MARK in (note.get("body") or "") and note[who][key] == we


def github(number: int) -> Host:
    """Give GitHub, as seen with the token of a workflow: its notes are by github-actions[bot]."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    issues = f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    return Host(
        header=("Authorization", f"Bearer {os.environ['GITHUB_TOKEN']}"),
        notes=f"{issues}/{number}/comments",
        note=f"{issues}/comments",
        method="PATCH",
        author=("user", "login", os.environ.get("COMMENT_AUTHOR", "github-actions[bot]")),
    )


def gitlab(number: int) -> Host:
    """Give GitLab, as seen with a project access token: its notes are by the token's user."""
    api, header = os.environ["CI_API_V4_URL"], ("PRIVATE-TOKEN", os.environ["GITLAB_TOKEN"])
    project = urllib.parse.quote(os.environ["CI_PROJECT_ID"], safe="")
    notes = f"{api}/projects/{project}/merge_requests/{number}/notes"
    we = ask(header, "GET", f"{api}/user")["id"]
    return Host(header=header, notes=notes, note=notes, method="PUT", author=("author", "id", we))


def ask(header: tuple[str, str], method: str, url: str, body: object = None) -> Any:
    """Send one request, and give what its answer holds."""
    data = None if body is None else json.dumps(body).encode()
    headers = {header[0]: header[1], "Content-Type": "application/json"}
    # The address comes from the host of the pipeline.
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        return json.load(answer)


def read(path: str) -> str:
    """Read a regular file; anything else is empty, and then only the other speaks.

    A link could lead to where this process keeps its token, and a pipe would never end.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        return ""
    with os.fdopen(opened, encoding="utf-8", errors="replace") as file:
        return file.read(4 * MOST_CHARACTERS)


def main(arguments: list[str]) -> int:
    """Put one comment."""
    try:
        kind, number, judge, comment = arguments
        host = {"github": github, "gitlab": gitlab}[kind](int(number))
    except (KeyError, ValueError) as error:
        usage = "ci/comment.py github|gitlab NUMBER JUDGE COMMENT, with the variables of its host"
        sys.stderr.write(f"{usage}: {error!r}\n")
        return 2
    host.put(sealed(put_together(read(judge), read(comment))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
