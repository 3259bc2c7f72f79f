"""The last job of a workflow edits our own comment alone, and always leaves one that is right."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kthena_components.cli.review import hosts
from kthena_components.cli.review import post_comment as script
from kthena_components.cli.review.artifact import MOST_BYTES
from kthena_components.cli.review.post_comment import MARK
from tests.support.comments import Host, host
from tests.test_ci_comment import COMMIT, OURS, SCRIPT

__all__ = ["host"]


def note(number: int, author: str, body: str) -> dict[str, Any]:
    who = {"login": author, "id": 7 if author == "github-actions[bot]" else 8}
    return {"id": number, "user": who, "author": who, "body": body}


def post(
    kind: str, host: str, folder: Path, judge: str = "Judged.", comment: str = OURS
) -> subprocess.CompletedProcess[str]:
    (folder / "judge.md").write_text(judge)
    (folder / "comment.md").write_text(comment)
    own = {
        "GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": host,
        "GITLAB_TOKEN": "t", "CI_API_V4_URL": host, "CI_PROJECT_ID": "3",
    }  # fmt: skip
    files = [str(folder / "judge.md"), str(folder / "comment.md")]
    return subprocess.run(
        [sys.executable, "-I", SCRIPT, kind, "5", COMMIT, *files],
        env={**os.environ, **own, "no_proxy": "127.0.0.1"},
        check=False, capture_output=True, text=True,
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
    other = note(4, "github-actions[bot]", f"another workflow's, which quotes {MARK} here")
    nobody = {**note(6, "", MARK), "user": None, "author": None}
    Host.notes = [stranger, other, nobody]
    assert post(kind, host, tmp_path).returncode == 0
    assert Host.asked[-1][:2] == first
    Host.notes = [stranger, *[other] * 120, note(2, "github-actions[bot]", f"before\n\n{MARK}\n")]
    assert post(kind, host, tmp_path).returncode == 0
    assert Host.asked[-1][:2] == second
    assert "1 stack touched." in Host.asked[-1][2]["body"]


each_host = pytest.mark.parametrize("kind", ["github", "gitlab"])


def last_body() -> str:
    body: str = Host.asked[-1][2]["body"]
    return body


@each_host
def test_a_comment_fits_after_it_is_escaped(host: str, tmp_path: Path, kind: str) -> None:
    """Each `@` becomes nine characters, which is too much for a string that fits before."""
    Host.most = {"github": 65_536, "gitlab": 1_000_000}[kind]
    lines = [f"- {'@x ' * 9}" for _ in range(Host.most // 28)]
    ran = post(kind, host, tmp_path, comment="\n".join(lines))
    assert (ran.returncode, ran.stderr) == (0, "")
    body = last_body()
    assert Host.most - 400 < len(body) <= Host.most
    shown = body.count("\n- ")
    left = len(lines) - shown
    assert f"so {left} further lines are not shown, with {left} findings and changes: see" in body
    assert body.endswith(f"This is the review of commit 012345&#8203;6789ab.\n\n{MARK}\n")


@each_host
@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("", OURS), ["the checks of the branch have no result"]),
        (("Judged.", ""), ["the previews have no result"]),
        (("", ""), ["the checks of the branch have no result", "the previews have no result"]),
    ],
)
def test_a_result_that_is_missing_is_said(
    host: str, tmp_path: Path, kind: str, texts: tuple[str, str], told: list[str]
) -> None:
    ran = post(kind, host, tmp_path, *texts)
    assert (ran.returncode, ran.stderr.splitlines()) == (1, told)
    for reason in told:
        assert f"**Not checked:** {reason}: see the log of the job." in last_body()


@each_host
def test_an_older_comment_says_that_it_is_out_of_date(host: str, tmp_path: Path, kind: str) -> None:
    edit = {"github": "PATCH", "gitlab": "PUT"}[kind]
    Host.notes = [note(2, "github-actions[bot]", f"before\n\n{MARK}")]
    Host.refuses = {edit: [422]}
    ran = post(kind, host, tmp_path)
    assert ran.returncode == 1
    assert re.fullmatch(
        rf"the comment is not written: {edit} http://\S+/2 answers 422 [\w ]+: no ::error::more\n",
        ran.stderr,
    )
    assert Host.asked[-1][0] == edit
    assert last_body().startswith("**This review is out of date.** ")
    assert "012345&#8203;6789ab" in last_body()


@each_host
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_token_that_is_refused_is_one_sentence(
    host: str, tmp_path: Path, kind: str, status: int
) -> None:
    Host.refuses = {"GET": [status] * 9}
    ran = post(kind, host, tmp_path)
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert re.match(rf"the comment is not written: GET http://\S+ answers {status} ", line)


def test_too_many_notes_are_said(host: str, tmp_path: Path) -> None:
    Host.notes = [note(1, "mallory", "x")] * 10_000
    ran = post("github", host, tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.endswith("has more than 10000 comments\n")


def test_a_host_that_is_away_for_a_moment_is_asked_again(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "PAUSES", (0.0, 0.0))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name, value in {
        "GITHUB_API_URL": host,
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_TOKEN": "t",
    }.items():
        monkeypatch.setenv(name, value)
    Host.refuses = {"GET": [503], "POST": [502]}
    hosts.github(5).put("text", MARK)
    assert [method for method, *_ in Host.asked] == ["GET", "GET", "POST", "GET", "POST"]
    Host.refuses = {"GET": [500, 500, 500]}
    with pytest.raises(hosts.HostError, match="answers 500"):
        hosts.github(5).put("text", MARK)
    Host.asked.clear()
    Host.refuses = {"GET": [403]}
    with pytest.raises(hosts.HostError, match="answers 403"):
        hosts.github(5).put("text", MARK)
    assert len(Host.asked) == 1


def test_a_host_that_is_not_there_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hosts, "PAUSES", ())
    for name, value in {
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_TOKEN": "t",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    assert script.main(["github", "5", COMMIT, str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert capsys.readouterr().err.startswith(
        "the comment is not written: GET http://127.0.0.1:9/repos/a/b/issues/5/comments: "
    )


def kept(host: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Ask for what a job has kept, as the last job of GitLab does."""
    own = {"GITLAB_TOKEN": "t", "CI_API_V4_URL": host, "CI_PROJECT_ID": "3"}
    return subprocess.run(
        [sys.executable, "-I", "-m", "kthena_components.cli.review.artifact", *arguments],
        env={**os.environ, **own, "no_proxy": "127.0.0.1", **more},
        check=False, capture_output=True, text=True,
    )  # fmt: skip


ASKED = ("70", "review", "comment.md")


def test_the_text_is_that_of_the_last_run_of_the_job(host: str) -> None:
    others = [{"id": number, "name": "test"} for number in range(150)]
    Host.jobs = [{"id": 207, "name": "review"}, *others, {"id": 209, "name": "review"}]
    Host.kept = {"207/artifacts/comment.md": b"old", "209/artifacts/comment.md": "né\n".encode()}
    ran = kept(host, *ASKED)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "né\n", "")
    assert [(method, path) for method, path, _ in Host.asked] == [
        ("GET", "/projects/3/pipelines/70/jobs"),
        ("GET", "/projects/3/pipelines/70/jobs"),
        ("GET", "/projects/3/jobs/209/artifacts/comment.md"),
    ]


def test_a_text_that_is_too_large_is_cut(host: str) -> None:
    Host.jobs = [{"id": 9, "name": "review"}]
    Host.kept = {"9/artifacts/comment.md": b"x" * (MOST_BYTES + 10)}
    assert len(kept(host, *ASKED).stdout) == MOST_BYTES + 1


@pytest.mark.parametrize(
    ("jobs", "refuses", "told"),
    [
        ([], {}, "pipeline 70 has no job review"),
        ([{"id": 9, "name": "review"}], {}, r"GET \S+/9/artifacts/comment.md answers 404 .*"),
        ([], {"GET": [403]}, r"GET \S+/pipelines/70/jobs answers 403 .*: no ::error::more"),
    ],
)
def test_a_text_that_is_missing_is_one_sentence(
    host: str, jobs: list[dict[str, Any]], refuses: dict[str, list[int]], told: str
) -> None:
    Host.jobs, Host.refuses = jobs, refuses
    ran = kept(host, *ASKED)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(f"comment.md of the job review is not read: {told}\n", ran.stderr)


@pytest.mark.parametrize("arguments", [(), ("x", "review", "comment.md")])
def test_what_asks_for_it_says_how_it_is_called(host: str, arguments: tuple[str, ...]) -> None:
    ran = kept(host, *arguments)
    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: artifact PIPELINE JOB FILE, with the variables of GitLab")


def test_it_says_how_it_is_called() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, "github"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: post_comment github|gitlab NUMBER COMMIT JUDGE COMMENT")
