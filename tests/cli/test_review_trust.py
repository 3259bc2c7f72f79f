"""What a branch may contain, and no program or path of it decides what is reviewed."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from kthena_components.cli.main import main
from tests.support.commits import EXECUTABLE, LINK, SUBMODULE, Commits, Content

PROJECT = "name: mine\nruntime: python\nstackConfigDir: stacks\n"
STACK = "config:\n  mine:pipeline: 2\n"
FILES: dict[str, Content] = {
    "Pulumi.yaml": PROJECT,
    "__main__.py": "import pulumi\n",
    "stacks/Pulumi.prod.yaml": STACK,
    "README.md": "# mine\n",
}
NOTHING = "The branch does not change its own checks or any code."
COMMIT = "0123456789012345678901234567890123456789"


class Ran(NamedTuple):
    """The exit status and the comment."""

    status: int
    text: str


def review(commits: Commits, *more: str) -> Ran:
    """Review the branch as a trusted job does: by its commits, in no checkout."""
    named = ("--repository", str(commits.git_dir), "--base", "main", "--no-preview")
    with redirect_stdout(StringIO()) as out:
        status = main(["review", *named, *more])
    return Ran(status, out.getvalue().replace("\\", "").replace("&#8203;", ""))


def reviewed(
    folder: Path, head: Mapping[str, Content | None], base: Mapping[str, Content] | None = None,
    *more: str,
) -> Ran:  # fmt: skip
    """Review a branch of a project."""
    return review(Commits.make(folder, FILES if base is None else base, head), *more)


def test_a_stack_file_and_a_text_need_nobody(tmp_path: Path) -> None:
    head: dict[str, Content | None] = {"stacks/Pulumi.prod.yaml": STACK + "  mine:x: 1\n"}
    ran = reviewed(tmp_path, {**head, "docs/a.md": "a\n"})
    assert (ran.status, ran.text.splitlines()[0]) == (0, NOTHING)


@pytest.mark.parametrize("folder", ["", "platform/", "a/b/c/"])
@pytest.mark.parametrize("below", ["", "stacks/", "x/"])
def test_a_bare_repository_in_the_branch_is_only_files(
    tmp_path: Path, folder: str, below: str
) -> None:
    """git takes a folder with HEAD, objects/ and refs/ for a repository, and runs its filters."""
    base: dict[str, Content] = {f"{folder}{path}": text for path, text in FILES.items()}
    other = tmp_path / "other"
    other.mkdir()
    run = ("git", "-C", str(other))
    subprocess.run([*run, "init", "--quiet", "--bare"], check=True)
    marker = tmp_path / "PWNED"
    for key in ("filter.x.clean", "filter.x.smudge", "core.fsmonitor", "diff.external"):
        subprocess.run([*run, "config", key, f"touch {marker}"], check=True)
    head: dict[str, Content | None] = {
        f"{folder}{below}{path.relative_to(other).as_posix()}": path.read_bytes()
        for path in other.rglob("*")
        if path.is_file()
    }
    head |= {
        f"{folder}{below}refs/heads/main": COMMIT,
        f"{folder}{below}objects/x": "x",
        f"{folder}.gitattributes": "* filter=x diff=x\n",
        f"{folder}__main__.py": "import os\n",
    }
    commits = Commits.make(tmp_path, base, head)
    ran = review(commits, "--project", folder)
    assert ran.status == 3, ran.text
    assert "__main__.py" in ran.text
    tree = commits.checkout(tmp_path / "branch") / folder
    status = main(["review", "--base", "origin/main", "--no-preview", "--tree", str(tree)])
    assert status == 3
    assert not marker.exists()


@pytest.mark.parametrize("target", ["examples/serving", "/etc", "../../judge/platform", ".."])
@pytest.mark.parametrize("project", ["platform", "platform/serving"])
def test_a_project_that_is_a_link_is_not_reviewed(
    tmp_path: Path, project: str, target: str
) -> None:
    base: dict[str, Content] = {f"{project}/{path}": text for path, text in FILES.items()}
    base |= {f"examples/serving/{path}": text for path, text in FILES.items()}
    gone: dict[str, Content | None] = {f"{project}/{path}": None for path in FILES}
    ran = reviewed(tmp_path, {**gone, "platform": (LINK, target)}, base, "--project", project)
    assert ran.status == 2
    assert ran.text.startswith("**Not checked:** platform is a link in commit ")


@pytest.mark.parametrize("mode", [LINK, SUBMODULE])
def test_a_base_whose_project_is_no_folder_is_refused(tmp_path: Path, mode: str) -> None:
    base: dict[str, Content] = {"platform": (mode, COMMIT), "README.md": "a\n"}
    head = {f"platform/{path}": text for path, text in FILES.items()}
    ran = reviewed(tmp_path, {"platform": None, **head}, base, "--project", "platform")
    assert ran.status == 2
    kind = "a link" if mode == LINK else "no folder"
    assert f"platform is {kind} in commit " in ran.text


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ran = reviewed(tmp_path, {"README.md": "a\n"}, None, "--project", "platfrom/serving")
    assert ran.status == 2
    assert "has no folder platfrom/serving" in ran.text


@pytest.mark.parametrize("file", ["Pulumi.yaml", "stacks/Pulumi.prod.yaml"])
@pytest.mark.parametrize("mode", [LINK, SUBMODULE])
def test_settings_must_be_regular_files(tmp_path: Path, file: str, mode: str) -> None:
    ran = reviewed(tmp_path, {file: (mode, COMMIT)})
    assert ran.status == 2
    assert file in ran.text


MAIN = PROJECT + "main: examples\n"


@pytest.mark.parametrize(
    ("base", "path", "more"),
    [
        ({"Pulumi.yaml": MAIN}, "examples/__main__.py", ()),
        ({"Pulumi.yaml": MAIN}, "examples/prompt.md", ()),
        ({"Pulumi.yaml": PROJECT + "main: docs/app.py\n", "docs/app.py": "a"}, "docs/a.md", ()),
        ({}, "examples/lib/sizes.py", ("--reads", "examples/lib")),
        ({}, "examples/lib/sizes.md", ("--reads", "examples/lib")),
        ({"prompts": (LINK, "docs/prompts")}, "docs/prompts/a.md", ()),
        ({"a": (LINK, "b/c"), "b": (LINK, "docs")}, "docs/c/a.md", ()),
        ({"a.md": (LINK, "docs/a.md")}, "docs/a.md", ()),
        ({"a": (LINK, "b/c"), "b/c/x": "1\n", "p": (LINK, "a/../docs")}, "b/docs/a.md", ()),
        (
            {"a/p": (LINK, "../b/../../docs"), "b": (LINK, "c/d/e"), "c/d/e/x": ""},
            "c/docs/a.md",
            (),
        ),
        ({}, "tests/conftest.py", ()),
        ({}, "docs/conf.py", ()),
    ],
)
def test_a_file_that_the_program_may_read_needs_a_person(
    tmp_path: Path, base: dict[str, Content], path: str, more: tuple[str, ...]
) -> None:
    ran = reviewed(tmp_path, {path: "x\n"}, {**FILES, **base}, *more)
    assert ran.status == 3, ran.text
    assert f"It changes code that previews run ({path})" in ran.text


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ({"settings.yaml": (LINK, "stacks/Pulumi.dev.yaml")}, "stacks/Pulumi.dev.yaml"),
        ({}, "stacks/Pulumi.lib/sizes.yaml"),
        ({}, "stacks/Pulumi.a b.yaml"),
    ],
)
def test_a_deleted_file_that_the_program_may_read_needs_a_person(
    tmp_path: Path, base: dict[str, Content], path: str
) -> None:
    ran = reviewed(tmp_path, {path: None}, {**FILES, path: STACK, **base})
    assert ran.status == 3, ran.text
    assert f"It changes code that previews run ({path})" in ran.text


@pytest.mark.parametrize("name", [".gitattributes", ".gitmodules", ".lfsconfig", ".GitAttributes"])
@pytest.mark.parametrize("folder", ["", "platform/", "lib/"])
def test_what_decides_about_a_checkout_is_code_around_the_project(
    tmp_path: Path, name: str, folder: str
) -> None:
    """`working-tree-encoding=UTF-7` makes `a +- 2` of `a + 2` in the checkout of a preview."""
    base = {**{f"platform/serving/{path}": text for path, text in FILES.items()}, "lib/a.py": "1\n"}
    more = ("--project", "platform/serving", "--reads", "lib")
    head: dict[str, Content | None] = {f"{folder}{name}": "*.py working-tree-encoding=UTF-7\n"}
    ran = reviewed(tmp_path, head, base, *more)
    assert ran.status == 3, ran.text
    assert f"code that previews run (/{folder}{name})" in ran.text
    assert reviewed(tmp_path / "b", {f"other/{name}": "x\n"}, base, *more).status == 0


@pytest.mark.parametrize("reads", [(), ("--reads",)])
@pytest.mark.parametrize("path", ["Platform/Serving/__main__.py", "platform/SERVING/é.py"])
def test_a_folder_of_another_case_is_the_project_on_some_machines(
    tmp_path: Path, path: str, reads: tuple[str, ...]
) -> None:
    base = {f"platform/serving/{path}": text for path, text in FILES.items()}
    ran = reviewed(tmp_path, {path: "x\n"}, base, "--project", "platform/serving", *reads)
    assert ran.status == 3, ran.text


@pytest.mark.parametrize("folder", ["Docs/Prompts", "docs/PROMPTS", "docs/prompt\u017f"])
def test_a_text_of_another_case_is_read_on_some_machines(tmp_path: Path, folder: str) -> None:
    base = {**FILES, "prompts": (LINK, "docs/prompts"), "docs/prompts/a.md": "a\n"}
    assert reviewed(tmp_path, {f"{folder}/a.md": "b\n"}, base).status == 3
    assert reviewed(tmp_path / "b", {"docs/prompt/a.md": "b\n"}, base).status == 0


def test_stack_files_behind_a_link_of_the_base_are_not_passed_over(tmp_path: Path) -> None:
    base = {**FILES, "stacks": (LINK, "docs/stacks"), "docs/stacks/Pulumi.prod.yaml": STACK}
    del base["stacks/Pulumi.prod.yaml"]
    ran = reviewed(tmp_path, {"docs/stacks/Pulumi.prod.yaml": STACK + "  mine:x: 1\n"}, base)
    assert ran.status == 2, ran.text
    assert "docs/stacks/Pulumi.prod.yaml" in ran.text


@pytest.mark.parametrize("link", ["policies", "policies/levels", "policies/levels/prod.json"])
def test_levels_behind_a_link_of_the_base_are_compared(tmp_path: Path, link: str) -> None:
    """A preview reads them through the link."""
    to = "../" * link.count("/") + "real"
    file = f"real{'policies/levels/prod.json'.removeprefix(link)}"
    base: dict[str, Content] = {**FILES, link: (LINK, to.encode()), file: "{}"}
    ran = reviewed(tmp_path, {file: '{"all": "disabled"}'}, base)
    assert ran.status == 1
    assert "policies/levels/prod.json: all: would be disabled" in ran.text


def test_a_program_behind_a_link_of_the_base_is_code(tmp_path: Path) -> None:
    base = {**FILES, "__main__.py": (LINK, "examples/app.py"), "examples/app.py": "a\n"}
    ran = reviewed(tmp_path, {"examples/app.py": "b\n"}, base)
    assert ran.status == 3, ran.text


def test_a_submodule_moves_for_everybody_to_see(tmp_path: Path) -> None:
    modules = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n\tignore = all\n'
    base = {**FILES, ".gitmodules": modules, "lib": (SUBMODULE, COMMIT)}
    ran = reviewed(tmp_path, {"lib": (SUBMODULE, COMMIT[::-1])}, base)
    assert ran.status == 3, ran.text
    assert "(lib)" in ran.text


@pytest.mark.parametrize("path", ["CODEOWNERS", "docs/CODEOWNERS", ".github/CODEOWNERS"])
def test_owners_of_code_decide_about_checks(tmp_path: Path, path: str) -> None:
    ran = reviewed(tmp_path, {path: "* @a\n"})
    assert ran.status == 3, ran.text
    assert "its own checks" in ran.text


def test_a_text_that_can_be_executed_needs_a_person(tmp_path: Path) -> None:
    assert reviewed(tmp_path, {"README.md": (EXECUTABLE, "# mine\n")}).status == 3


@pytest.mark.parametrize("target", ["/etc/hostname", "../../x", "../..", "nowhere"])
def test_a_link_of_the_base_leads_wherever_it_wants(tmp_path: Path, target: str) -> None:
    base = {**FILES, "docs/x": (LINK, target)}
    ran = reviewed(tmp_path, {"stacks/Pulumi.prod.yaml": STACK + "  mine:x: 1\n"}, base)
    assert (ran.status, ran.text.splitlines()[0]) == (0, NOTHING)


@pytest.mark.parametrize(
    "checks", [{"policies/levels": (LINK, "/etc")}, {"policies": (SUBMODULE, COMMIT)}]
)
def test_checks_that_the_base_does_not_contain_are_not_guessed(
    tmp_path: Path, checks: dict[str, Content]
) -> None:
    ran = reviewed(tmp_path, {"README.md": "a\n"}, {**FILES, **checks})
    assert ran.status == 2
    assert "so these checks cannot be read: put the files there" in ran.text


def test_settings_of_the_base_that_cannot_be_read_need_a_person(tmp_path: Path) -> None:
    """Otherwise each change of them would be compared with nothing."""
    base = {**FILES, "stacks/Pulumi.prod.yaml": STACK + "  mine:gpu_budget: [8\n"}
    repaired = {"stacks/Pulumi.prod.yaml": STACK + "  mine:gpu_budget: 9000\n"}
    ran = reviewed(tmp_path, repaired, base)
    assert ran.status == 3, ran.text
    assert "settings whose former values are unknown" in ran.text


def test_what_git_would_replace_or_hide_is_read_as_it_is(tmp_path: Path) -> None:
    commits = Commits.make(tmp_path, FILES, {"__main__.py": "import os\n"})
    commits.git("replace", "change", "main")
    (commits.git_dir / "info").mkdir(exist_ok=True)
    (commits.git_dir / "info" / "attributes").write_text("* -diff export-ignore\n")
    assert review(commits).status == 3


def test_git_of_the_checkout_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head: dict[str, Content | None] = {"bin/git": (EXECUTABLE, "#!/bin/sh\ntouch PWNED\n")}
    tree = Commits.make(tmp_path, FILES, head).checkout(tmp_path / "branch")
    monkeypatch.setenv("PATH", f"{tree / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tree)
    assert main(["review", "--base", "origin/main", "--no-preview"]) == 3
    assert not list(tmp_path.rglob("PWNED"))


def test_variables_of_git_select_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits.make(tmp_path, FILES, {"__main__.py": "import os\n"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nowhere"))
    assert review(commits).status == 3


def test_a_repository_inside_of_another_must_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as a submodule in the place of the project, with a copy of the base."""
    commits = Commits.make(tmp_path, FILES, {"README.md": "a\n"})
    tree = commits.checkout(tmp_path / "branch")
    inner = commits.checkout(tree / "platform")
    asked = ["review", "--base", "origin/main", "--no-preview", "--tree", str(inner)]
    assert main(asked) == 2
    assert "name one with --repository" in capsys.readouterr().out
    assert main([*asked, "--repository", str(tree)]) == 2  # the project is not part of it


def test_a_worktree_and_a_shallow_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commits = Commits.make(tmp_path, FILES, {"__main__.py": "import os\n"})
    tree = commits.checkout(tmp_path / "branch")
    beside = tmp_path / "beside"
    subprocess.run(["git", "-C", str(tree), "worktree", "add", "-q", str(beside)], check=True)
    asked = ["review", "--base", "origin/main", "--no-preview", "--tree"]
    assert main([*asked, str(beside)]) == 3
    shutil.rmtree(tree)
    source = commits.git_dir.as_uri()
    clone = ["git", "clone", "--quiet", "--depth", "1", "--no-single-branch", source, str(tree)]
    subprocess.run(clone, check=True)
    assert main([*asked, str(tree)]) == 2
    assert "fetch the whole history" in capsys.readouterr().out


def test_a_branch_cannot_have_the_name_of_a_commit(tmp_path: Path) -> None:
    commits = Commits.make(tmp_path, FILES, {"__main__.py": "import os\n"})
    base = commits.git("rev-parse", "main").decode().strip()
    for name in (base, "HEAD"):
        commits.git("update-ref", f"refs/heads/{name}", "main" if name == "HEAD" else "change")
    assert review(commits, "--base", base).status == 3


def tree_of(commits: Commits, *entries: tuple[str, str, str]) -> str:
    """Write a tree with entries that git itself would not write."""
    raw = b"".join(
        b"%s %s\0%s" % (mode.encode(), name.encode(), bytes.fromhex(oid))
        for mode, name, oid in entries
    )
    written = commits.git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", stdin=raw)
    return written.decode().strip()


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "a/"), ("..",), (".",), (".GIT",), ("x/..",), ("x/.git",)]
)
def test_a_commit_that_programs_read_differently_is_refused(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    commits = Commits.make(tmp_path, FILES, {"README.md": "a\n"})
    blob = commits.git("rev-parse", "main:README.md").decode().strip()
    entries = []
    for name in names:
        folder, _, file = name.partition("/")
        if "/" in name:
            inner = tree_of(commits, ("100644", file or "y", blob))
            entries.append(("40000", folder, inner))
        else:
            entries.append(("100644", name, blob))
    made = tree_of(commits, *entries)
    commit = commits.git("-c", "user.name=a", "-c", "user.email=a", "commit-tree", "-p", "main",
                         "-m", "x", made).decode().strip()  # fmt: skip
    ran = review(commits, "--head", commit)
    assert ran.status == 2, ran.text
    assert "which no working tree can contain" in ran.text


def test_what_the_base_tightened_meanwhile_is_no_change_of_the_branch(tmp_path: Path) -> None:
    levels = '{"serving-groups": {"enforcementLevel": "mandatory", "gpuBudget": %d}}'
    base = {**FILES, "policies/levels/prod.json": levels % 64}
    commits = Commits.make(tmp_path, base, {"docs/a.md": "a\n"})
    tree = commits.checkout(tmp_path / "base", "main")
    (tree / "policies" / "levels" / "prod.json").write_text(levels % 8)
    stack = tree / "stacks" / "Pulumi.prod.yaml"
    stack.write_text(STACK + "  mine:gpu_budget: 8\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, "commit", "-qam", "x"], cwd=tree, check=True)
    subprocess.run(["git", "push", "-q", "origin", "main"], cwd=tree, check=True)
    ran = review(commits)
    assert (ran.status, ran.text.splitlines()[0]) == (0, NOTHING)
    raised = {
        "policies/levels/prod.json": levels % 128,
        "stacks/Pulumi.prod.yaml": STACK + "  a:b: 1\n",
    }
    (tmp_path / "x").mkdir()
    other = Commits.make(
        tmp_path / "x", {**base, "stacks/Pulumi.prod.yaml": stack.read_text()}, raised
    )
    ran = review(other)
    assert ran.status == 1
    assert "gpuBudget" in ran.text
    assert "gpu_budget: would be removed, and the base has 8" in ran.text


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("mine:output: render", "mine:output: cluster", "output"),
        ("mine:output: cluster", None, "output"),
        ("kubernetes:context: prod", None, "kubernetes:context"),
        ("mine:kubeconfig: k.yaml", None, "kubeconfig"),
        ("mine:render_directory: a", None, "render_directory"),
    ],
)
def test_where_a_stack_is_deployed_needs_a_person(
    tmp_path: Path, before: str, after: str | None, told: str
) -> None:
    path, other = "stacks/Pulumi.prod.yaml", {"stacks/Pulumi.dev.yaml": STACK}
    head = None if after is None else f"config:\n  {after}\n"
    ran = reviewed(tmp_path, {path: head}, {**FILES, **other, path: f"config:\n  {before}\n"})
    assert ran.status == 3, ran.text
    assert f"It changes what previews connect to ({path}: {told})." in ran.text


@pytest.mark.parametrize("levels", ["x", (LINK, "../README.md")])
def test_a_file_in_place_of_the_folder_of_levels_keeps_those_of_the_wheel_away(
    tmp_path: Path, levels: Content
) -> None:
    """A preview then has no levels: complete() adds them only where nothing is."""
    ran = reviewed(tmp_path, {"policies/levels": levels})
    assert ran.status == 1, ran.text
    assert "policies/levels/prod.json: serving-rules: would lower the level of " in ran.text


@pytest.mark.parametrize("key", ["<<", "'<<'", '"<<"'])
def test_settings_in_a_merge_key_are_not_passed_over(tmp_path: Path, key: str) -> None:
    text = f"{key}: {{config: {{kubernetes:kubeconfig: k}}}}\n"
    ran = reviewed(tmp_path, {"stacks/Pulumi.prod.yaml": text})
    assert ran.status == 2, ran.text
    assert "stacks/Pulumi.prod.yaml:1:1: has a merge key" in ran.text
