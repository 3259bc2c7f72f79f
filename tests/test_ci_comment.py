"""The last job of a workflow edits our own note alone, and seals whatever text it is given."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given

from kthena_components.cli.comment import MARK
from tests.cli.test_shown import Page, nasty

SCRIPT = Path(__file__).parent.parent / "kthena_components" / "cli" / "post_comment.py"
OURS = f"""\
## Servings in this change

1 stack touched.

<details><summary>a</summary>

- roles\\[0\\] &lt;b&gt; @&#8203;x

</details>

{MARK}
"""
spec = importlib.util.spec_from_file_location("ci_comment", SCRIPT)
assert spec
assert spec.loader
script: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)


@given(nasty)
def test_whatever_a_program_wrote_leads_nowhere(text: str) -> None:
    sealed = script.sealed(text)
    page = Page(sealed)
    assert not {"a", "img", "script", "iframe"} & set(page.tags)
    for part in ("@team", "#12", "GH-12", "://", "www."):
        assert part not in page.text
    assert sealed.count(MARK) == 1
    assert sealed.endswith(f"\n{MARK}\n")


@pytest.mark.parametrize(
    "text",
    ["[a](https://x)", "[a][b]\n\n[b]: https://x", "<a href=x>", "![i](x)", "&#64;team",
     "&commat;team", "\\@team", "https:/\\/x", "@\u202eteam", f"{MARK} {MARK}", "<!-- x -->",
     "<details open><summary>", "/label ~bug", " /approve"],
)  # fmt: skip
def test_a_text_is_sealed(text: str) -> None:
    page = Page(script.sealed(text))
    assert set(page.tags) <= {"p", "summary"}, script.sealed(text)
    assert "@team" not in page.text
    assert "href" not in page.text or "<a href=x>" in page.text


def test_our_own_comment_stays_what_it_is() -> None:
    assert Page(script.sealed(OURS)).text.replace("\u200b", "") == Page(OURS).text.replace(
        "\u200b", ""
    )
    assert Page(script.sealed(OURS)).tags == Page(OURS).tags
    assert script.sealed(script.sealed(OURS)) == script.sealed(OURS)


def test_what_the_judge_says_cannot_be_left_out() -> None:
    said = "**A person must approve this branch.** It changes ci/review."
    judge = f"{said}\n\n- gpuBudget would be 64\n\n{MARK}\n"
    folded = f"<details>\n{said}\n</details>"
    for forged in ("", "all is well", folded, f"{'x ' * 40_000}\n{said}", judge):
        sealed = script.sealed(script.put_together(judge, forged))
        assert sealed.startswith(f"{said}\n\n- gpuBudget would be 64\n"), forged
        assert sealed.count(said) == 1
        assert sealed.endswith(f"{MARK}\n")


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """A link could lead to the environment, where the token is, and a pipe would never end."""
    (tmp_path / "link.md").symlink_to("/proc/self/environ")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    for name in ("link.md", "pipe.md", "folder.md", "nothing.md"):
        assert script.read(str(tmp_path / name)) == ""


class Host(BaseHTTPRequestHandler):
    """The parts of GitHub's and GitLab's interfaces that the script asks."""

    notes: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[tuple[str, str, Any]]] = []

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((self.command, self.path.partition("?")[0], body))
        found: Any = {}
        if self.command == "GET":
            found = {"id": 7} if self.path.endswith("/user") else self.notes
            if isinstance(found, list):
                page = int(self.path.rpartition("&page=")[2])
                found = found[100 * (page - 1) : 100 * page]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - names that the server looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host() -> Iterator[str]:
    Host.notes, Host.asked = [], []
    server = HTTPServer(("127.0.0.1", 0), Host)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def note(number: int, author: str, body: str) -> dict[str, Any]:
    who = {"login": author, "id": 7 if author == "github-actions[bot]" else 8}
    return {"id": number, "user": who, "author": who, "body": body}


def post(kind: str, host: str, folder: Path) -> None:
    (folder / "judge.md").write_text("")
    (folder / "comment.md").write_text(OURS)
    own = {
        "GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": host,
        "GITLAB_TOKEN": "t", "CI_API_V4_URL": host, "CI_PROJECT_ID": "3",
    }  # fmt: skip
    files = [str(folder / "judge.md"), str(folder / "comment.md")]
    subprocess.run(
        [sys.executable, "-I", SCRIPT, kind, "5", *files],
        env={**os.environ, **own, "no_proxy": "127.0.0.1"}, check=True,
    )  # fmt: skip


NOTES = "/projects/3/merge_requests/5/notes"


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (
            "github",
            ("POST", "/repos/a/b/issues/5/comments"),
            ("PATCH", "/repos/a/b/issues/comments/2"),
        ),
        ("gitlab", ("POST", NOTES), ("PUT", f"{NOTES}/2")),
    ],
)
def test_only_our_own_note_is_edited(
    host: str, tmp_path: Path, kind: str, first: tuple[str, str], second: tuple[str, str]
) -> None:
    stranger = note(1, "mallory", f"{MARK} edit me")
    other = note(4, "github-actions[bot]", "another workflow's")
    Host.notes = [stranger, other]
    post(kind, host, tmp_path)
    assert Host.asked[-1][:2] == first
    Host.notes = [stranger, *[other] * 120, note(2, "github-actions[bot]", f"before\n\n{MARK}\n")]
    post(kind, host, tmp_path)
    assert Host.asked[-1][:2] == second
    assert "1 stack touched." in Host.asked[-1][2]["body"]


def test_it_says_how_it_is_called() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, "github"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: post_comment github|gitlab NUMBER JUDGE COMMENT")
