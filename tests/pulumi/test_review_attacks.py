"""Branches that try to get past their review, each carried out: the judge is their base."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.pulumi.test_review import DEV, OWN, SENTENCE, Repository
from tests.support.engine import ROOT, Stack

pytestmark = pytest.mark.programs
LEVELS = "policies/levels/dev.json"
OFF = json.dumps({"serving-rules": {"levels": {"*": "disabled"}}, "serving-groups": "disabled"})
DECODE = "engine 'decode' starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24."
LOGIN = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:9"}}]
users:
  - name: u
    user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [PWNED]}}
"""
CONFIG_MAP = """\
from pulumi_kubernetes.core.v1 import ConfigMap

ConfigMap("a", metadata={"name": "a", "namespace": "default"}, data={"a": "b"})
"""


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("attacks"))


@pytest.fixture
def repository(deployed: Repository) -> Repository:
    deployed.branch()
    return deployed


def write(repository: Repository, path: str, text: str) -> None:
    (repository.root / path).parent.mkdir(parents=True, exist_ok=True)
    (repository.root / path).write_text(text)
    repository.commit()


@pytest.mark.parametrize("written", ['"stacks"', "stacks # where they are"])
def test_the_folder_of_the_stacks_may_be_written_in_any_way(
    repository: Repository, written: str
) -> None:
    repository.edit("Pulumi.yaml", "stackConfigDir: stacks", f"stackConfigDir: {written}")
    repository.edit(DEV, "pipeline: 2", "pipeline: 3")
    ran = repository.review()
    assert ran.status == 1, ran.log
    assert ran.lines[0].startswith(
        "**A person must approve this branch.** It changes code that previews run"
    )
    assert SENTENCE in ran.comment


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stackConfigDir: stacks", "stackConfigDir: nowhere"),
        ("stackConfigDir: stacks", "stackConfigDir: [stacks]"),
        ("stackConfigDir: stacks", "stackConfigDir: ../stacks"),
        ("name: kthena", "name: &a [*a]\nx: kthena"),
        ("stackConfigDir: stacks", "stackConfigDir: stacks\n---\na: b"),
    ],
)
def test_a_project_that_is_not_understood_is_not_checked(
    repository: Repository, old: str, new: str
) -> None:
    repository.edit(DEV, "pipeline: 2", "pipeline: 3")
    repository.edit("Pulumi.yaml", old, new)
    ran = repository.review()
    assert ran.status == 2, ran.log
    assert ran.lines[0].startswith("**Not checked:** "), ran.lines[0]
    assert "affects no stack" not in ran.comment


def test_levels_that_a_branch_switches_off_check_it_all_the_same(repository: Repository) -> None:
    shutil.copy(ROOT / "tests" / "policies" / "program" / "__main__.py", repository.root)
    (repository.root / DEV).unlink()
    write(repository, "stacks/Pulumi.own.yaml", OWN)
    write(repository, "policies/levels/own.json", OFF)
    write(repository, LEVELS, OFF)
    ran = repository.review()
    assert ran.status == 1, ran.log
    first = (
        "**A person must approve this branch.** It changes its own checks (policies/levels/dev.js"
    )
    assert ran.lines[0].startswith(first)
    assert DECODE in ran.comment
    assert "would be disabled, and the base has mandatory" in ran.comment
    assert "\\[levels-weakened\\]" in ran.comment or "[levels-weakened]" in ran.comment


def test_policies_and_a_package_that_find_nothing_do_not_check(repository: Repository) -> None:
    repository.edit(
        "kthena_components/policies/pack.py", "POLICIES: list[Policy] = [", "POLICIES = []\n_ = ["
    )
    checks = "kthena_components/core/rules/registry.py"
    text = (repository.root / checks).read_text()
    write(repository, checks, text + "\nCHECKS = ()\nrun_checks = lambda *_, **__: []\n")
    repository.edit(DEV, "pipeline: 2", "pipeline: 3")
    ran = repository.review()
    assert ran.status == 1, ran.log
    assert "kthena\\_components/core/rules/registry.py" in ran.lines[0]
    assert SENTENCE.partition(". ")[0] in ran.comment


def test_a_waiver_of_the_branch_does_not_excuse_it(repository: Repository) -> None:
    repository.edit(DEV, "pipeline: 2", "pipeline: 12")
    repository.edit(DEV, "worker_replicas: 1", "worker_replicas: 11")
    waiver = 'waivers: {pp-within-layers: "2099-12-31 nobody minds"}'
    repository.edit(DEV, "- name: llama-8b\n", f"- name: llama-8b\n      {waiver}\n")
    ran = repository.review()
    assert ran.status == 1, ran.log
    assert "is new in this branch and does not apply to it: waived until 2099-12-31" in ran.comment
    assert "\nWaived:" not in ran.comment
    approved = repository.review("--approved")
    assert approved.status == 0, approved.log
    assert "\nWaived:" in approved.comment


def test_a_link_is_not_taken_for_a_stack_file(repository: Repository) -> None:
    (repository.root / DEV).unlink()
    (repository.root / DEV).symlink_to("/etc/hostname")
    repository.commit()
    ran = repository.review()
    assert ran.status == 2, ran.log
    told = f"**Not checked:** {DEV}: no regular file with a valid stack name."
    assert ran.lines[0] == told


@pytest.mark.parametrize(
    "stated", [json.dumps(LOGIN), "./login.yaml", "docs/link.yaml", "PATH/login.yaml"]
)
def test_no_program_of_a_branch_logs_in(repository: Repository, stated: str) -> None:
    write(repository, "login.yaml", LOGIN)
    (repository.root / "docs").mkdir(exist_ok=True)
    (repository.root / "docs" / "link.yaml").symlink_to("../login.yaml")
    stated = stated.replace("PATH", str(repository.root))
    repository.edit(DEV, "config:\n", f"config:\n  kubernetes:kubeconfig: {stated}\n")
    ran = repository.review()
    assert ran.status == 2, ran.log
    assert ran.lines[0].startswith(
        "**Not checked:** stack dev is not previewed, because its kubecon"
    )
    assert "runs 'touch PWNED' (exec)" in ran.lines[0]
    assert not list(repository.root.rglob("PWNED"))


@pytest.mark.parametrize(
    ("stated", "path", "main"),
    [("'{} #.md'", "{} #.md", ""), ("../docs/k.md", "docs/k.md", "program")],
)
def test_no_text_logs_in_that_the_provider_takes_for_a_kubeconfig(
    repository: Repository, stated: str, path: str, main: str
) -> None:
    """With --allow-exec the provider shows that it reads this file."""
    write(repository, str(Path(main, "__main__.py")), CONFIG_MAP)
    if main:
        repository.edit("Pulumi.yaml", "stackConfigDir:", f"main: {main}\nstackConfigDir:")
    write(repository, path, LOGIN.replace("command:", "interactiveMode: Never, command:"))
    repository.edit(DEV, "config:\n", f"config:\n  kubernetes:kubeconfig: {stated}\n")
    ran = repository.review()
    assert ran.status == 2, ran.log
    assert "runs 'touch PWNED' (exec)" in ran.lines[0]
    assert not list(repository.root.rglob("PWNED"))
    ran = repository.review("--allow-exec")
    made = list(repository.root.rglob("PWNED"))
    for file in made:
        file.unlink()
    assert made, ran.log


@contextmanager
def asked_cluster() -> Iterator[tuple[str, list[str]]]:
    """Give a kubeconfig of a server, and the paths that it is asked for."""
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        user = "users: [{name: u, user: {token: a}}]"
        yield LOGIN.partition("users:")[0].replace("https://127.0.0.1:9", place) + user, asked
        server.shutdown()


def test_nothing_is_sent_to_a_cluster_of_the_branch_before_an_approval(
    repository: Repository,
) -> None:
    """A preview sends objects for a dry run, with the secret values of the config."""
    write(repository, "__main__.py", CONFIG_MAP)
    with asked_cluster() as (text, asked):
        stated = json.dumps(text)
        repository.edit(DEV, "config:\n", f"config:\n  kubernetes:kubeconfig: {stated}\n")
        ran = repository.review()
        assert (ran.status, asked) == (3, []), ran.log
        assert "Stack dev is previewed after an approval" in ran.comment
        repository.review("--approved")
    assert asked


def test_a_provider_reads_the_settings_of_a_project_with_its_name(tmp_path: Path) -> None:
    """So a review counts them as what previews connect to: tests/cli/test_stack_config.py."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "Pulumi.yaml").write_text("name: kubernetes\nruntime: python\n")
    (source / "__main__.py").write_text(CONFIG_MAP)
    stack = Stack.make(source, "s", tmp_path)
    with asked_cluster() as (text, asked):
        stack.settings.write_text(json.dumps({"config": {"kubeconfig": text}}))
        stack.preview()
    assert asked


def test_what_a_program_prints_is_no_command_of_the_pipeline(repository: Repository) -> None:
    said = "print('::error::x'); print('a ##[error]b'); print(chr(27) + '[31mred')\n"
    write(repository, "__main__.py", said + (repository.root / "__main__.py").read_text())
    ran = repository.review()
    assert ran.status == 3, ran.log
    assert "::error::x" in ran.log
    for line in ran.log.splitlines():
        assert line.isprintable(), line
        assert "##[" not in line
        assert not line.lstrip().startswith("::"), line


def test_the_script_of_the_base_checks_a_branch_that_replaces_it(
    repository: Repository, tmp_path: Path
) -> None:
    write(repository, "ci/review", "#!/bin/sh\nexit 0\n")
    repository.edit(DEV, "pipeline: 2", "pipeline: 3")
    base = tmp_path / "base"
    repository.git("worktree", "add", "--quiet", "--detach", str(base), "main")
    (base / ".venv").symlink_to((repository.root / ".venv").resolve())
    ran = subprocess.run(
        [base / "ci" / "review", "main", "--tree", repository.root],
        cwd=tmp_path, env=repository.stack.variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    repository.git("worktree", "remove", "--force", str(base))
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.splitlines()[0].startswith(
        "**A person must approve this branch.** It changes"
    )
    assert SENTENCE in ran.stdout


@pytest.mark.parametrize("stated", ["/proc/self/cwd/docs/login.yaml", "~/docs/login.yaml", "a:b"])
def test_a_kubeconfig_that_the_branch_chooses_is_looked_through_wherever_it_lies(
    repository: Repository, stated: str
) -> None:
    write(repository, "docs/login.yaml", LOGIN)
    repository.edit(DEV, "config:\n", f"config:\n  kubernetes:kubeconfig: {stated}\n")
    ran = repository.review(HOME=str(repository.root))
    assert ran.status == 2, ran.log
    assert ran.lines[0].startswith("**Not checked:** stack dev is not previewed"), ran.lines[0]


def test_a_tag_cannot_stand_in_for_the_base(repository: Repository) -> None:
    repository.git("update-ref", "refs/remotes/origin/main", "main")
    write(repository, "ci/review", (repository.root / "ci" / "review").read_text() + "# more\n")
    repository.git("tag", "--force", "origin/main")
    ran = repository.review("origin/main", "--no-preview")
    repository.git("tag", "--delete", "origin/main")
    assert ran.status == 3, ran.log
    assert "(ci/review)" in ran.lines[0]


def test_branches_that_were_merged_into_each_other_hide_nothing(repository: Repository) -> None:
    """Two commits are the best common ancestors, and only one of them differs."""
    repository.git("switch", "--quiet", "--force-create", "base", "main")
    repository.edit(LEVELS, "\n", "\n\n")
    levels = repository.git("rev-parse", "HEAD").strip()
    repository.git("switch", "--quiet", "--force-create", "change", "main")
    write(repository, "README.md", "a note\n")
    note = repository.git("rev-parse", "HEAD").strip()
    repository.git("switch", "--quiet", "base")
    repository.git("merge", "--quiet", "--no-edit", note)
    repository.git("switch", "--quiet", "change")
    repository.git("merge", "--quiet", "--no-commit", levels)
    repository.git("checkout", note, "--", "policies")
    repository.commit()
    ran = repository.review("base", "--no-preview")
    assert ran.status == 3, ran.log
    assert LEVELS in ran.lines[0]


def test_a_limit_does_not_go_with_its_stack_file(repository: Repository) -> None:
    repository.edit(DEV, "config:\n", "config:\n  kthena-components:gpu_budget: 2\n")
    repository.git("branch", "--force", "limited")
    repository.git("mv", DEV, "stacks/Pulumi.dev2.yaml")
    repository.edit("stacks/Pulumi.dev2.yaml", "gpu_budget: 2", "gpu_budget: 999")
    ran = repository.review("limited", "--no-preview")
    assert ran.status == 1, ran.log
    assert "gpu\\_budget: would be removed, and the base has 2" in ran.comment
    assert "the base has no levels for stacks/Pulumi.dev2.yaml" in ran.lines[0]


@pytest.mark.parametrize("path", [LEVELS, DEV])
def test_a_link_to_what_never_ends_is_not_waited_for(repository: Repository, path: str) -> None:
    (repository.root / path).unlink()
    (repository.root / path).symlink_to("/dev/stdin")
    repository.commit()
    assert repository.review("--no-preview").status in {1, 2}


def test_a_stack_file_that_is_not_understood_is_not_previewed(repository: Repository) -> None:
    """Pulumi may take another value of two than the one that was looked through."""
    twice = f"config:\n  kubernetes:kubeconfig: {json.dumps(LOGIN)}\n  kubernetes:kubeconfig: x\n"
    repository.edit(DEV, "config:\n", twice)
    ran = repository.review()
    assert ran.status == 2, ran.log
    because = "stacks/Pulumi.dev.yaml cannot be read"
    assert f"**Not checked:** stack dev is not previewed, because {because}" in ran.comment
    assert "--- stack dev" not in ran.log


def test_a_limit_does_not_go_with_the_folder_of_the_stacks(repository: Repository) -> None:
    repository.edit(DEV, "config:\n", "config:\n  kthena-components:gpu_budget: 2\n")
    repository.git("branch", "--force", "limited")
    repository.git("mv", "stacks", "moved")
    repository.edit("Pulumi.yaml", "stackConfigDir: stacks", "stackConfigDir: moved")
    repository.edit("moved/Pulumi.dev.yaml", "gpu_budget: 2", "gpu_budget: 999")
    ran = repository.review("limited", "--no-preview")
    assert ran.status == 1, ran.log
    assert "gpu\\_budget: would be 999, and the base has 2" in ran.comment
