"""Post the comment on a pull request: edit our earlier comment, or create the first one.

  GITHUB_TOKEN=… python -I -m kthena_components.cli.post_comment github NUMBER judge.md comment.md
  GITLAB_TOKEN=… python -I -m kthena_components.cli.post_comment gitlab NUMBER judge.md comment.md

This program has the token, so the text of comment.md is all that it uses from the pull request. A
program of the pull request may have written that text. Therefore judge.md comes first, because no
such program ran where it was written. It also removes everything that could ping somebody, act as a
link, or hide text. It imports only the standard library.
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
"""GitHub accepts 65,536 characters in a comment, GitLab more."""
PAGE, MOST_PAGES = 100, 50
SECONDS = 60
APART = "&#8203;"
"""A zero-width space. A backslash or a character reference would not prevent a mention."""
LINKS = re.compile(
    r"@(?=\S)(?!&#8203;)|:(?=//)|www(?=\.)|\](?=[(:\[])|(?<!&)[#!$%~^](?=[\w\"])|GH-(?=\d)"
    r"|\[(?=\w+:)|(?<!\w)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{4}(?=[0-9a-f]{3,36}(?!\w))",
    re.IGNORECASE,
)
"""The beginning of a link, a mention or a reference, followed by the rest of it."""
ACTION = re.compile(r"^(?=[ \t]*/)", re.MULTILINE)
"""The beginning of a line that GitLab would read as a quick action, such as `/label`."""
REFERENCE = re.compile(r"&(?!(?:amp|lt|gt|#8203);)")
TAG = re.compile(r"<(?!/?(?:details|summary)>)")
Note = Mapping[str, Any]


def sealed(text: str) -> str:
    """Remove links, mentions, images, and all tags except <details>, from a text."""
    text = text.replace(MARK, "")[:MOST_CHARACTERS]
    shown = "".join(char for char in text if char.isprintable() or char == "\n")
    shown = TAG.sub("&lt;", REFERENCE.sub("&amp;", shown.replace("##[", "## [")))
    shown = LINKS.sub(rf"\g<0>{APART}", ACTION.sub(APART, re.sub(r"\\(?=[@/])", "", shown)))
    return f"{shown.rstrip()}\n\n{MARK}\n"


def put_together(judge: str, comment: str) -> str:
    """Join the result of the job `judge` and the lines of the comment that it does not have."""
    said = judge.replace(MARK, "").strip()
    known = set(said.splitlines()) - {""}
    more = "\n".join(line for line in comment.splitlines() if line not in known)
    return f"{said}\n\n{more.strip()}" if said else comment


@dataclass(frozen=True)
class Host:
    """The comments API of a host of pull requests."""

    header: tuple[str, str]
    notes: str
    """URL of all comments of the pull request."""
    note: str
    """URL of one comment, without its number."""
    method: str
    """HTTP method that edits a comment."""
    author: tuple[str, str, object]
    """Two keys that lead to the author of a comment, and our own value."""

    def put(self, text: str) -> None:
        """Edit the comment of an earlier run, or create one. Other authors' comments stay."""
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
    """Return the API of GitHub. With a workflow's token, the author is github-actions[bot]."""
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
    """Return the API of GitLab. With a project access token, the author is the token's user."""
    api, header = os.environ["CI_API_V4_URL"], ("PRIVATE-TOKEN", os.environ["GITLAB_TOKEN"])
    project = urllib.parse.quote(os.environ["CI_PROJECT_ID"], safe="")
    notes = f"{api}/projects/{project}/merge_requests/{number}/notes"
    we = ask(header, "GET", f"{api}/user")["id"]
    return Host(header=header, notes=notes, note=notes, method="PUT", author=("author", "id", we))


def ask(header: tuple[str, str], method: str, url: str, body: object = None) -> Any:
    """Send one request, and return the JSON of the response."""
    data = None if body is None else json.dumps(body).encode()
    headers = {header[0]: header[1], "Content-Type": "application/json"}
    # The URL comes from the pipeline's host.
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        return json.load(answer)


def read(path: str) -> str:
    """Read a regular file. Return an empty text for anything else.

    A link could point to this process's token, and reading a pipe could block forever.
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
    """Post one comment."""
    try:
        kind, number, judge, comment = arguments
        host = {"github": github, "gitlab": gitlab}[kind](int(number))
    except (KeyError, ValueError) as error:
        usage = "usage: post_comment github|gitlab NUMBER JUDGE COMMENT"
        sys.stderr.write(f"{usage}, with the variables of the host's pipeline: {error!r}\n")
        return 2
    host.put(sealed(put_together(read(judge), read(comment))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
