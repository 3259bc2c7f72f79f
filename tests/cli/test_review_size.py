"""Branches that would make a review endless, or larger than the memory, with a small push."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.test_review_trust import FILES, STACK, review, reviewed, tree_of
from tests.support.commits import LINK, WHO, Commits, Content

MOST_SECONDS = 60


def limited(commits: Commits, *more: str, memory: int = 3 * 2**30) -> tuple[int, str]:
    """Review a branch in a process with little memory and time."""
    limit = f"import resource as r; r.setrlimit(r.RLIMIT_AS, ({memory}, {memory}))\n"
    start = "import sys; from kthena_components.cli.main import main; sys.exit(main(sys.argv[1:]))"
    named = ("--repository", str(commits.git_dir), "--base", "main", "--no-preview", *more)
    ran = subprocess.run(
        [sys.executable, "-c", limit + start, "review", *named],
        capture_output=True, text=True, check=False, timeout=MOST_SECONDS,
    )  # fmt: skip
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout


def commit_of(commits: Commits, *entries: tuple[str, str, str]) -> str:
    """Commit a tree that is written as it is, on main."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    tree = tree_of(commits, *entries)
    return commits.git(*who, "commit-tree", "-p", "main", "-m", "x", tree).decode().strip()


def oid(commits: Commits, name: str) -> str:
    return commits.git("rev-parse", name).decode().strip()


def test_a_tree_of_ten_billion_files(tmp_path: Path) -> None:
    commits = Commits.make(tmp_path, FILES, {"README.md": "a\n"})
    blob = oid(commits, "main:README.md")
    tree = tree_of(commits, *(("100644", f"f{i}", blob) for i in range(10)))
    for _ in range(8):
        tree = tree_of(commits, *(("40000", f"d{i}", tree) for i in range(10)))
    head = commit_of(commits, *(("40000", f"d{i}", tree) for i in range(10)))
    status, text = limited(commits, "--head", head)
    assert status == 2, text
    assert "lists more than 1,000,000 files or 128 MiB of paths, the limit" in text


def test_one_large_file_as_many_links(tmp_path: Path) -> None:
    large: dict[str, Content | None] = {"k": (LINK, b"\0" * 50_000_000)}
    commits = Commits.make(tmp_path, FILES, large)
    link = oid(commits, "change:k")
    entries = [("120000", f"k{i:03}", link) for i in range(250)]
    entries += [("100644", "Pulumi.yaml", oid(commits, "main:Pulumi.yaml"))]
    entries += [("40000", "stacks", oid(commits, "main:stacks"))]
    status, text = limited(
        commits, "--head", commit_of(commits, *sorted(entries, key=lambda e: e[1]))
    )
    assert status == 3, text


@pytest.mark.parametrize("place", ["stacks", "policies/levels"])
def test_one_large_file_as_many_settings(tmp_path: Path, place: str) -> None:
    suffix = "yaml" if place == "stacks" else "json"
    large = {f"{place}/Pulumi.a.{suffix}": b" " * 60_000_000}
    commits = Commits.make(tmp_path, FILES, large)
    blob = oid(commits, f"change:{place}/Pulumi.a.{suffix}")
    named = [f"Pulumi.s{i:03}.{suffix}" for i in range(250)]
    entries = [("100644", name, blob) for name in named]
    if place == "stacks":
        tops = [("40000", "stacks", tree_of(commits, *entries))]
    else:
        levels = tree_of(commits, ("40000", "levels", tree_of(commits, *entries)))
        tops = [("40000", "policies", levels), ("40000", "stacks", oid(commits, "main:stacks"))]
    pulumi = ("100644", "Pulumi.yaml", oid(commits, "main:Pulumi.yaml"))
    status, text = limited(commits, "--head", commit_of(commits, pulumi, *tops))
    assert status == 2, text
    assert "settings files with 15,000,000,0" in text


def quick(tmp_path: Path, head: Mapping[str, Content | None]) -> tuple[int, str]:
    commits = Commits.make(tmp_path, FILES, head)
    start = time.monotonic()
    ran = review(commits)
    assert time.monotonic() - start < MOST_SECONDS / 2
    return ran.status, ran.text


def test_links_that_lead_through_each_other(tmp_path: Path) -> None:
    """Each of them took a pass over all: 6,000 took 40 s."""
    many = 20_000
    status, _ = quick(tmp_path, {f"d/k{i}": (LINK, f"k{(i + 1) % many}") for i in range(many)})
    assert status == 3


def test_links_with_long_targets_end(tmp_path: Path) -> None:
    target = "a/../" * 800 + "b"
    status, text = quick(tmp_path, {f"d/k{i}": (LINK, target) for i in range(3_000)})
    assert status == 2
    assert "its links take more than 1,000,000 steps, the limit" in text


def test_many_files_that_links_lead_to(tmp_path: Path) -> None:
    links: dict[str, Content | None] = {f"d/k{i}": (LINK, f"../e/f{i}.md") for i in range(10_000)}
    status, text = quick(tmp_path, {**links, **{f"e/f{i}.md": "x" for i in range(10_000)}})
    assert status == 3
    assert "and 19995 others" in text


def test_many_stack_files(tmp_path: Path) -> None:
    many: dict[str, Content | None] = {f"stacks/Pulumi.s{i}.yaml": STACK for i in range(1_001)}
    status, text = quick(tmp_path, {**many, "__main__.py": "import os\n"})
    assert status == 2
    assert "and at most 1,000 with 4,194,304 bytes are read in one review" in text
    assert "It changes code that previews run (__main__.py)" in text


@pytest.mark.parametrize("path", ["a/" * 600 + "b.md", "a" * 256 + ".md", "é" * 128 + ".md"])
def test_a_path_that_no_working_tree_contains(tmp_path: Path, path: str) -> None:
    ran = reviewed(tmp_path, {path: "x"})
    assert ran.status == 2
    assert "which no working tree can contain" in ran.text
    assert len(ran.text) < 1_000


def test_long_paths_do_not_push_a_reason_out_of_the_comment(tmp_path: Path) -> None:
    long = {f"{'@' * 250}/{'a' * 250}/{i}.py": "x" for i in range(5)}
    other = {"stacks/Pulumi.prod.yaml": f"environment:\n- x\n{STACK}"}
    ran = reviewed(tmp_path, {**long, **other})
    assert ran.status == 3
    assert "what previews connect to (stacks/Pulumi.prod.yaml: environment)" in ran.text[:2_000]


def test_many_odd_stack_files_are_one_line(tmp_path: Path) -> None:
    odd: dict[str, Content | None] = {f"stacks/Pulumi.a {i}.yaml": STACK for i in range(300)}
    ran = reviewed(tmp_path, {**odd, "__main__.py": "import os\n"})
    assert ran.status == 2
    assert "and 295 others: no regular file with a valid stack name" in ran.text
    assert "It changes code that previews run (__main__.py)" in ran.text[:1_000]


@pytest.mark.parametrize("what", ["main:stacks", "1111111111111111111111111111111111111111"])
@pytest.mark.parametrize("place", ["stacks", "policies"])
def test_a_settings_file_that_is_no_file_is_not_checked(
    tmp_path: Path, what: str, place: str
) -> None:
    """A tree may name any object as a file, and a partial clone lacks some."""
    commits = Commits.make(tmp_path, FILES, {"README.md": "a\n"})
    object_ = oid(commits, what) if ":" in what else what
    tops = [("100644", "Pulumi.yaml", oid(commits, "main:Pulumi.yaml"))]
    if place == "stacks":
        tops += [("40000", "stacks", tree_of(commits, ("100644", "Pulumi.prod.yaml", object_)))]
    else:
        levels = tree_of(commits, ("100644", "prod.json", object_))
        tops += [("40000", "policies", tree_of(commits, ("40000", "levels", levels)))]
        tops += [("40000", "stacks", oid(commits, "main:stacks"))]
    ran = review(commits, "--head", commit_of(commits, *tops))
    assert ran.status == 2
    assert ran.text.startswith(f"**Not checked:** object `{object_[:12]}` is ")


def criss_crossed(folder: Path, times: int) -> Commits:
    """Merge other branches into main, and each of them into the branch, too."""
    commits = Commits.make(folder, FILES, {"README.md": "a\n"})
    made = [
        f"commit refs/heads/other{number}\nmark :{number + 1}\ncommitter {WHO}\ndata 1\nx\n"
        f"from refs/heads/main^0\nM 100644 inline o{number}.py\ndata 1\nx\n"
        for number in range(times)
    ]
    merges = "".join(f"merge :{number + 1}\n" for number in range(times))
    files = "".join(f"M 100644 inline o{number}.py\ndata 1\nx\n" for number in range(times))
    made += [
        f"commit refs/heads/{name}\ncommitter {WHO}\ndata 1\nx\n"
        f"from refs/heads/{name}^0\n{merges}{files}"
        for name in ("main", "change")
    ]
    commits.git("fast-import", "--quiet", stdin="\n".join(made).encode())
    return commits


@pytest.mark.parametrize(("times", "status"), [(8, 3), (17, 2), (1_800, 2)])
def test_a_branch_that_merges_much_of_what_its_base_merges(
    tmp_path: Path, times: int, status: int
) -> None:
    """Each is a best common ancestor, and all files of each of them are read."""
    commits = criss_crossed(tmp_path, times)
    ran = review(commits)
    assert ran.status == status, ran.text
    told = "more than 16 best common ancestors, the limit; merge the base into the branch"
    assert (told in ran.text) is (status == 2)
    if status == 2:  # what the message tells is a remedy
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        tree = oid(commits, "change^{tree}")
        parents = ("-p", "change", "-p", "main")
        merge = commits.git(*who, "commit-tree", *parents, "-m", "x", tree).decode().strip()
        assert review(commits, "--head", merge).status == 0
