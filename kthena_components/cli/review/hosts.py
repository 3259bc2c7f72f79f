"""The comments of a pull request, in the APIs of GitHub and GitLab.

It imports only the standard library, because the program with the token uses it.
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PAGE, MOST_PAGES = 100, 100
"""GitHub has at most 2,500 comments of an issue, GitLab 5,000 besides system notes."""
SECONDS = 60
PAUSES = (2.0, 8.0)
"""Seconds before the second and the third try, if the host is not available."""
_BUSY = 429
_BROKEN = 500
_MOST_QUOTED = 200
Note = Mapping[str, Any]


class HostError(Exception):
    """The host did not do what was asked. The text is for the user."""

    def __init__(self, text: str, *, may_pass: bool = False) -> None:
        """Keep whether the same request may succeed later."""
        super().__init__(text)
        self.may_pass = may_pass


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
    author: tuple[str, str]
    """Two keys that lead to the author of a comment."""
    we: Callable[[], object]
    """Returns our own value of these keys."""

    def put(self, text: str, mark: str) -> None:
        """Edit our comment of an earlier run, or create one. Other comments stay.

        Args:
            mark: Its last line, which our earlier comment has, too.

        Raises:
            HostError: The host does not take the comment.
        """
        for pause in (*PAUSES, None):
            try:
                self._put(text, mark)
            except HostError as error:
                if not error.may_pass or pause is None:
                    raise
                time.sleep(pause)
            else:
                return

    def _put(self, text: str, mark: str) -> None:
        own = self._own(mark)
        if own is None:
            answer = ask(self.header, "POST", self.notes, {"body": text})
        else:
            answer = ask(self.header, self.method, f"{self.note}/{own}", {"body": text})
        if not isinstance(answer, dict) or "id" not in answer:
            raise HostError(f"{self.notes} answers without the number of a comment")

    def _own(self, mark: str) -> object:
        we, (who, key) = self.we(), self.author
        for note in ask_all(self.header, self.notes, "comments"):
            author = note.get(who) or {}
            if (note.get("body") or "").rstrip().endswith(mark) and author.get(key) == we:
                return note["id"]
        return None


def github(number: int) -> Host:
    """Return the API of GitHub. With a workflow's token, the author is github-actions[bot]."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    issues = f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    return Host(
        header=("Authorization", f"Bearer {os.environ['GITHUB_TOKEN']}"),
        notes=f"{issues}/{number}/comments",
        note=f"{issues}/comments",
        method="PATCH",
        author=("user", "login"),
        we=lambda: os.environ.get("COMMENT_AUTHOR", "github-actions[bot]"),
    )


def gitlab(number: int) -> Host:
    """Return the API of GitLab. With a project access token, the author is the token's user."""
    header, api, project = gitlab_project()
    notes = f"{project}/merge_requests/{number}/notes"
    return Host(
        header=header,
        notes=notes,
        note=notes,
        method="PUT",
        author=("author", "id"),
        we=lambda: ask(header, "GET", f"{api}/user")["id"],
    )


def gitlab_project() -> tuple[tuple[str, str], str, str]:
    """Return the header with the token, the URL of the API, and the URL of the project."""
    api, header = os.environ["CI_API_V4_URL"], ("PRIVATE-TOKEN", os.environ["GITLAB_TOKEN"])
    project = urllib.parse.quote(os.environ["CI_PROJECT_ID"], safe="")
    return header, api, f"{api}/projects/{project}"


def ask(header: tuple[str, str], method: str, url: str, body: object = None) -> Any:
    """Send one request, and return the JSON of the response.

    Raises:
        HostError: There is no response, or it is not JSON, or its status is an error.
    """
    try:
        return json.loads(load(header, method, url, body))
    except ValueError as error:
        raise HostError(f"{_request_text(method, url)} does not answer with JSON") from error


def ask_all(header: tuple[str, str], url: str, what: str) -> Iterator[Mapping[str, Any]]:
    """Yield the items of a list that the host gives page by page.

    Args:
        header: The header with the token.
        what: The name of the items in an error.

    Raises:
        HostError: As `ask`, or the response is not a list, or the list is too long.
    """
    for page in range(1, MOST_PAGES + 1):
        found = ask(header, "GET", f"{url}?per_page={PAGE}&page={page}")
        if not isinstance(found, list):
            raise HostError(f"{url} answers without a list of {what}")
        yield from found
        if len(found) < PAGE:
            return
    raise HostError(f"{url} has more than {PAGE * MOST_PAGES} {what}")


def load(
    header: tuple[str, str], method: str, url: str, body: object = None, most: int | None = None
) -> bytes:
    """Send one request, and return the response, at most `most` bytes of it.

    Raises:
        HostError: There is no response, or its status is an error.
    """
    data = None if body is None else json.dumps(body).encode()
    headers = {header[0]: header[1], "Content-Type": "application/json"}
    # The URL comes from the pipeline's host.
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    asked = _request_text(method, url)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            found: bytes = answer.read(most)
            return found
    except urllib.error.HTTPError as error:
        message = f"{asked} answers {error.code} {error.reason}{_message(error)}"
        raise HostError(message, may_pass=error.code == _BUSY or error.code >= _BROKEN) from error
    except (OSError, http.client.HTTPException) as error:
        raise HostError(f"{asked}: {error}", may_pass=True) from error


def _request_text(method: str, url: str) -> str:
    return f"{method} {url.partition('?')[0]}"


def _message(error: urllib.error.HTTPError) -> str:
    """Return the message in the host's answer, as one line."""
    try:
        message = json.loads(error.read(10 * 1024)).get("message")
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        return ""
    line = "".join(char if char.isprintable() else " " for char in str(message or ""))
    return f": {line[:_MOST_QUOTED]}" if line else ""
