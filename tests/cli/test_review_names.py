"""Which commit a name means. Whoever can push chooses the names of branches and tags."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.test_review_trust import FILES, review
from tests.support.commits import Commits

CODE = {"__main__.py": "import os\n"}


def hostile(folder: Path, *tags: str) -> Commits:
    """Make a branch that needs an approval, and tags that name its own commit."""
    commits = Commits.make(folder, FILES, CODE)
    for tag in tags:
        commits.git("update-ref", f"refs/tags/{tag}", "refs/heads/change")
    return commits


@pytest.mark.parametrize("name", ["main", "refs/heads/main", "origin/main", "main~0", "main^0"])
def test_no_tag_stands_for_a_branch(tmp_path: Path, name: str) -> None:
    tags = (
        "main",
        "refs/heads/main",
        "refs/remotes/main",
        "origin/main",
        "refs/remotes/origin/main",
    )
    commits = hostile(tmp_path, *tags)
    commits.git("update-ref", "refs/remotes/origin/main", "refs/heads/main")
    assert review(commits, "--base", name).status == 3


def test_a_tag_with_the_name_of_a_remote_branch_is_refused(tmp_path: Path) -> None:
    """Such as in a clone with --branch, which has no local main."""
    commits = hostile(tmp_path, "main")
    commits.git("update-ref", "refs/remotes/origin/main", "refs/heads/main")
    commits.git("update-ref", "-d", "refs/heads/main")
    ran = review(commits)
    assert ran.status == 2
    assert "'main' is a tag, and a remote has a branch of this name; write origin/main" in ran.text
    assert review(commits, "--base", "origin/main").status == 3
    assert review(commits, "--base", "refs/tags/main").status == 0


@pytest.mark.parametrize("option", ["--base", "--head"])
def test_a_tag_that_looks_like_a_hash_is_refused(tmp_path: Path, option: str) -> None:
    commits = Commits.make(tmp_path, FILES, CODE)
    meant, other = ("main", "change") if option == "--base" else ("change", "main")
    short = commits.git("rev-parse", f"refs/heads/{meant}").decode()[:8]
    assert review(commits, option, short).status == 3
    commits.git("update-ref", f"refs/tags/{short}", f"refs/heads/{other}")
    for name in (short, f"{short}~0"):
        ran = review(commits, option, name)
        assert ran.status == 2
        assert "may be a hash; write the whole hash" in ran.text


def test_a_full_name_is_not_searched_elsewhere(tmp_path: Path) -> None:
    commits = hostile(tmp_path, "refs/heads/other")
    assert review(commits, "--base", "refs/heads/other").status == 2
    assert review(hostile(tmp_path / "b", "1.0"), "--base", "1.0").status == 0


def test_a_shallow_clone_is_not_led_to_an_older_ancestor(tmp_path: Path) -> None:
    """Behind the end of its history lies the commit that the branch takes back."""
    origin = tmp_path / "origin"

    def git(*arguments: str, folder: Path = origin) -> str:
        own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder))
        ran = subprocess.run(["git", *own, *arguments], check=True, capture_output=True, text=True)
        return ran.stdout.strip()

    def commit(name: str, **files: str) -> None:
        for path, text in files.items():
            (origin / path).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--message", name)
        git("tag", name)

    (origin / "stacks").mkdir(parents=True)
    git("init", "--quiet", "--initial-branch", "main")
    for path, text in FILES.items():
        (origin / path).write_text(str(text))
    commit("old", **{"__main__.py": "old\n"})
    git("checkout", "--quiet", "-b", "side")
    commit("side1", **{"a.md": "a\n"})
    git("checkout", "--quiet", "main")
    commit("fixed", **{"__main__.py": "fixed\n"})
    for number in range(6):
        commit(f"later{number}", **{"README.md": f"{number}\n"})
    git("merge", "--quiet", "--no-edit", "side")
    tree = git("rev-parse", "old^{tree}")
    back = git("commit-tree", "-p", "fixed", "-m", "back", tree)
    git("branch", "change", git("commit-tree", "-p", back, "-p", "old", "-m", "x", tree))

    clone = tmp_path / "clone"
    asked = ("clone", "--quiet", "--no-single-branch", origin.as_uri(), str(clone))
    git(*asked, "--depth", "3", "--no-tags", folder=tmp_path)
    named = ("--base", "origin/main", "--head", "origin/change")
    ran = review(Commits(clone / ".git"), *named)
    assert ran.status == 2, ran.text
    assert "the clone is shallow" in ran.text
    git("fetch", "--quiet", "--unshallow", folder=clone)
    assert review(Commits(clone / ".git"), *named).status == 3
