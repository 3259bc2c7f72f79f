"""Laws of a review over random trees: links, submodules, attributes, repositories, odd names."""

import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.cli.review.branch_diff import Sides, changes_of, open_sides
from kthena_components.cli.review.changed_paths import Branch, Layout, sort_branch
from kthena_components.cli.review.git import open_repository
from kthena_components.reading.project import ProjectError
from tests.support.commits import EXECUTABLE, FILE, LINK, SUBMODULE, Commits

COMMIT = "0123456789012345678901234567890123456789"
PARTS = (
    "a", "b", "A", "lib", "docs", "examples", "stacks", "policies", "HEAD", "refs", "objects",
    "a.md", "b.MD", "x.py", "x.png", "LICENSE", "CODEOWNERS", ".gitattributes", ".gitmodules",
    ".gitignore", "Pulumi.dev.yaml", "-n", "a b", 'q"', "l\nf", "é", "\udcff", "config",
)  # fmt: skip
TARGETS = (".", "..", "a", "b", "lib", "docs", "../docs", "../lib/a", "/etc", "x.py", "a/b",
           "a/../docs", "../a/..", "b/../../a", "lib/..")  # fmt: skip
TEXTS = ("1\n", "2\n", "* filter=x -diff export-ignore\n", '[submodule "a"]\n\tignore = all\n')
paths = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("/".join)
prose = st.sampled_from(("docs/a.md", "lib/a.md", "serving/docs/x.png", "a/b/a.md", "a/b.MD"))
contents = st.one_of(
    st.just((FILE, "3\n")),
    st.tuples(st.sampled_from((FILE, FILE, EXECUTABLE)), st.sampled_from(TEXTS)),
    st.tuples(st.just(LINK), st.sampled_from(TARGETS)),
    st.tuples(st.just(SUBMODULE), st.sampled_from((COMMIT, COMMIT[::-1]))),
)
Files = dict[str, tuple[str, str]]
PROJECT = "name: mine\nruntime: python\n{main}"
STACKS = [Layout(prefix="Pulumi.", suffix=".yaml")]


@st.composite
def trees(draw: st.DrawFn) -> tuple[Files, Files, str, str, tuple[str, ...] | None]:
    """Draw the files of two commits, the project's folder, its `main`, and --reads.

    Links, `main` and --reads lead to the changed paths more often than by chance.
    """
    project = draw(st.sampled_from(("", "serving")))
    changes = draw(st.dictionaries(paths | prose, contents, min_size=1, max_size=5))
    near = sorted({part for path in changes for part in (path, posixpath.dirname(path)) if part})
    base = draw(st.dictionaries(paths, contents, max_size=8))
    for name in draw(st.sets(st.sampled_from(("k", "serving/k", "lib/k")), max_size=2)):
        target = posixpath.relpath(draw(st.sampled_from(near)), posixpath.dirname(name) or ".")
        base[name] = (LINK, target)
    base = _folders_win(base)
    gone = draw(st.sets(st.sampled_from(sorted(base)), max_size=2)) if base else set()
    head = _folders_win({**{p: c for p, c in base.items() if p not in gone}, **changes})
    main = draw(st.sampled_from(("", "docs", *near)))
    main = posixpath.relpath(main, project) if project and main else main
    # A project whose settings cannot be read is not reviewed at all.
    main = "" if main.startswith("..") or not main.isprintable() else main
    settings = (FILE, PROJECT.format(main=f"main: {json.dumps(main)}\n" if main else ""))
    for files in (base, head):
        for path in [p for p in files if p == project or p.startswith(f"{project}/Pulumi.")]:
            del files[path]
        files[posixpath.join(project, "Pulumi.yaml")] = settings
    reads = draw(st.sampled_from((None, (), ("lib",), tuple(near[:2]))))
    return base, head, project, main, reads


def _folders_win(files: Files) -> Files:
    """Drop what cannot be in one tree: a file with the name of a folder."""
    return {p: c for p, c in files.items() if not any(o.startswith(f"{p}/") for o in files)}


def _delta(base: Files, head: Files) -> dict[str, tuple[str, str] | None]:
    gone: dict[str, tuple[str, str] | None] = {path: None for path in base if path not in head}
    return {**gone, **{p: c for p, c in head.items() if base.get(p) != c}}


def _written(files: Mapping[str, tuple[str, str]], folder: Path) -> Path:
    """Write a commit to disk, so that the kernel follows its links."""
    folder.mkdir()
    for path, (mode, content) in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            place.symlink_to(content)
        elif mode == SUBMODULE:
            place.mkdir()
        else:
            place.write_text(content)
    return folder


def _readable(top: Path, folders: tuple[str, ...]) -> Iterator[str]:
    """Yield the real paths that a program reaches through links from some folders, as the kernel
    follows them."""
    waiting, seen = [top / folder for folder in folders], set[str]()
    while waiting:
        folder = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen or not Path(real).is_relative_to(top):
            continue
        seen.add(real)
        below = [Path(real)] if not Path(real).is_dir() else list(Path(real).rglob("*"))
        for path in below:
            if path.is_symlink():
                to = os.path.realpath(path)
                # A link that leads over itself has a real path, but no program can open it.
                if path.exists() and Path(to).is_relative_to(top):
                    yield os.path.relpath(to, top)
                    waiting.append(Path(to))


def _sorted_by_us(sides: Sides, reads: tuple[str, ...] | None) -> Branch:
    projects = []
    for tree in (sides.before, sides.after):
        try:
            projects.append(sides.project_in(tree))
        except ProjectError:
            continue
    return sort_branch(changes_of(sides, projects, reads), STACKS, ["dev"], reads)


@settings(max_examples=80, deadline=None)
@given(trees())
def test_no_change_is_lost_and_nothing_that_a_program_reads_is_harmless(
    drawn: tuple[Files, Files, str, str, tuple[str, ...] | None],
) -> None:
    base, head, project, main, reads = drawn
    with TemporaryDirectory() as made:
        folder = Path(os.path.realpath(made))
        commits = Commits.make(folder, base, _delta(base, head))
        repository = open_repository(commits.git_dir)
        sides = open_sides(
            repository, repository.commit("main"), repository.commit("change"), project
        )
        branch = _sorted_by_us(sides, reads)
        told = {path.removeprefix("/") if project else path for path in _told(branch)}
        everything = ("",) if reads is None else (project, *reads)
        starts = (*everything, posixpath.join(project, main))
        reached = {
            path
            for files, name in ((base, "base"), (head, "head"))
            for path in _readable(_written(files, folder / name), starts)
        }
        for path in _delta(base, head):
            own = path.removeprefix(f"{project}/") if project else path
            if {own, path} & told:
                continue
            is_inside = not project or path.startswith("serving/")
            modes = {files[path][0] for files in (base, head) if path in files}
            read = is_inside or reads is None or any(_in(path, each) for each in reads)
            plain = modes == {FILE} and path.lower().endswith((".md", ".png", "license"))
            assert plain or not read, path
            assert not (main and _in(path, posixpath.join(project, main))), path
            assert not any(_in(path, each) for each in reached), (path, reached)


def _told(branch: Branch) -> list[str]:
    deleted = [f"Pulumi.{stack}.yaml" for stack in branch.deleted]
    known = ["Pulumi.dev.yaml"] if "dev" in branch.stacks else []
    return [*branch.files, *branch.judge, *branch.code, *branch.odd, *deleted, *known]


def _in(path: str, folder: str) -> bool:
    return folder in {".", path} or path.startswith(f"{folder}/")
