"""A stack file may be a stranger's: of what it names nothing is run, sent or waited for."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.main import main
from kthena_components.cluster.kubeconfig import anchored, programs_of

SERVER = "https://127.0.0.1:9"
"""Port 9 of loopback: nobody listens there."""
ANSWERS = "does not answer: Connection refused"
"""What is said when a kubeconfig is used."""
Doctor = Callable[..., str]


@pytest.fixture
def doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Doctor:
    """Run `doctor --stack s` in a folder that somebody else wrote; give what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def command(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["doctor", "--stack", "s", *arguments])
        said = capsys.readouterr()
        assert (ended.value.code, said.out) == (2, "")
        assert said.err.count("\n") == 1
        return said.err.removeprefix("kthena-components doctor: ").rstrip("\n")

    return command


def stack(kubeconfig: str = "tree/kubeconfig", **config: str) -> None:
    Path("Pulumi.yaml").write_text("name: p\nruntime: python\n")
    stated = {"p:output": "cluster", "p:kubeconfig": kubeconfig}
    own = {f"p:{key}": value for key, value in config.items()}
    Path("Pulumi.s.yaml").write_text(json.dumps({"config": {**stated, **own}}))


def body(user: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    users = {"u": user, **others}
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "u",
        "clusters": [{"name": "c", "cluster": {"server": SERVER}}],
        "users": [{"name": name, "user": held} for name, held in users.items()],
        "contexts": [{"name": n, "context": {"cluster": "c", "user": n}} for n in users],
    }  # fmt: skip


def written(user: dict[str, Any], path: str = "tree/kubeconfig", **others: dict[str, Any]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(yaml.safe_dump(body(user, **others)))
    return path


def touching(name: str = "ran") -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", f"touch {name}"],
        }
    }


def test_a_program_that_the_tree_names_is_not_run(doctor: Doctor) -> None:
    stack()
    written(touching())
    assert doctor() == (
        "Pulumi.s.yaml: kubeconfig names tree/kubeconfig, and its user 'u' runs 'sh -c touch ran' "
        "(exec), but programs and files that a stack file names are neither run nor sent. Look at "
        "it, then name it yourself with --kubeconfig, or add --allow-exec"
    )
    assert not list(Path().rglob("ran"))


@pytest.mark.parametrize("how", ["flag", "allowed", "KUBECONFIG", "home"])
def test_a_program_that_the_user_names_or_allows_is_run(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = written(touching(), "home/.kube/config" if how == "home" else "tree/kubeconfig")
    stack("~/.kube/config" if how == "home" else path)
    if how == "KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", f"elsewhere{os.pathsep}{path}")
    doctor(*{"flag": ["--kubeconfig", path], "allowed": ["--allow-exec"]}.get(how, ()))
    assert list(Path().rglob("ran"))


def test_a_program_for_an_auth_provider_is_not_run(doctor: Doctor) -> None:
    stack()
    config = {"cmd-path": "sh", "cmd-args": "-c 'touch ran'"}
    written({"auth-provider": {"name": "gcp", "config": config}})
    assert "its user 'u' runs 'sh -c 'touch ran'' (auth-provider), but programs" in doctor()
    assert not list(Path().rglob("ran"))
    written({"auth-provider": {"name": "oidc"}})
    assert "its user 'u' logs in by 'oidc' (auth-provider), but" in doctor()


def test_a_file_that_the_tree_names_is_not_sent(doctor: Doctor) -> None:
    stack()
    Path("secret").write_text("mine")
    written({"tokenFile": "../secret"})
    said = doctor()
    assert (
        "its user 'u' sends the content of the file '../secret' (tokenFile), but programs" in said
    )
    assert ANSWERS in doctor("--allow-exec")


def test_a_kubeconfig_that_runs_nothing_is_used(doctor: Doctor) -> None:
    stack()
    written({"token": "t"})
    assert ANSWERS in doctor()


def test_only_the_user_of_the_context_counts(doctor: Doctor) -> None:
    stack()
    written({"token": "t"}, other=touching())
    assert ANSWERS in doctor()
    assert "user 'other' runs" in doctor("--context", "other")
    stack(context="other")
    assert "user 'other' runs" in doctor()
    # Which user is meant is not clear.
    assert "user 'other' runs" in doctor("--context", "none")


def test_the_file_that_was_looked_through_is_the_one_that_is_used(doctor: Doctor) -> None:
    # The official client takes a path with a colon for two.
    stack("tree/good:tree/evil")
    written({"token": "t"}, "tree/good")
    written({**touching()}, "tree/evil")
    written({"token": "t"}, "tree/good:tree/evil")
    assert ANSWERS in doctor()
    assert not list(Path().rglob("ran"))


def test_paths_in_it_count_from_its_folder(doctor: Doctor) -> None:
    stack()
    written({"client-certificate": "mine.crt", "client-key": "mine.key"})
    assert f"File does not exist: {Path('tree/mine.crt').absolute()}" in doctor()


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "users twice": (
        lambda path: path.write_text("users: []\nusers: []\n"),
        "states 'users' twice in one map: remove one of the two",
    ),
    "a pipe": (os.mkfifo, "is a pipe, and only regular files are read"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a device, and only regular files"),
    "a folder": (Path.mkdir, "is a folder, and only regular files are read"),
    "nothing": (lambda _: None, "cannot be read: No such file or directory"),
    "no map": (lambda path: path.write_text("[]"), "contains no map of settings"),
    "odd users": (lambda path: path.write_text("users: 3"), "it is not a valid kubeconfig"),
    "an alias bomb": (
        lambda path: path.write_text(
            "a0: &a0 [x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
        ),
        "expands to more than 1,000,000 values by its aliases",
    ),
}


@pytest.mark.parametrize(("make", "told"), ODD.values(), ids=ODD)
def test_what_is_no_kubeconfig_is_told(
    doctor: Doctor, make: Callable[[Path], object], told: str
) -> None:
    stack()
    Path("tree").mkdir()
    make(Path("tree/kubeconfig"))
    assert told in doctor()


def test_odd_clusters_are_told(doctor: Doctor) -> None:
    stack()
    Path("tree").mkdir()
    for clusters in (3, [3], [{"cluster": 3}]):
        odd = {**body({"token": "t"}), "clusters": clusters}
        Path("tree/kubeconfig").write_text(json.dumps(odd))
        assert "Name another cluster" in doctor()


def test_what_would_be_run_shows_every_character() -> None:
    plugin = {"command": "sh\x1b[2J", "args": ["\u202e", "x" * 100]}
    (told,) = programs_of(body({"exec": plugin}))
    assert told.startswith(r"its user 'u' runs 'sh\x1b[2J \u202e xxx")
    assert told.endswith("x…' (exec)")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("users: [", "it is not valid YAML"),
        ('{"users": [], "users": []}', "it states 'users' twice in one map"),
        ("- a", "it contains no map of settings"),
        ("users: 3", "it is not a valid kubeconfig"),
        ("users: [3]", "it is not a valid kubeconfig"),
        ("users: [{name: u, user: 3}]", "it is not a valid kubeconfig"),
        ("users: [{name: u, user: {exec: 3}}]", "it is not a valid kubeconfig"),
        ("Users: [{Name: u, User: {EXEC: {Command: x}}}]", "its user 'u' runs 'x' (exec)"),
        (
            "users: [{name: 1, user: {to\N{KELVIN SIGN}enFile: t}}]",
            "its user '1' sends the content of the file 't' (tokenFile)",
        ),
        ("users: [{name: 1, user: {token: t, exec: null}}]", ""),
        ("{}", ""),
    ],
)
def test_what_a_text_runs_is_told_and_never_raises(content: str, told: str) -> None:
    assert "".join(programs_of(content)).startswith(told)
    assert bool(programs_of(content)) == bool(told)


def test_paths_are_anchored_and_the_rest_stays() -> None:
    content = body({"client-key": "k", "client-certificate": "/c", "tokenFile": ""})
    content["clusters"][0]["cluster"]["certificate-authority"] = "../ca"
    made = anchored(content, "/there")
    assert made["users"][0]["user"] == {
        "client-key": "/there/k", "client-certificate": "/c", "tokenFile": "",
    }  # fmt: skip
    assert made["clusters"][0]["cluster"]["certificate-authority"] == "/there/../ca"
    assert content["users"][0]["user"]["client-key"] == "k"
    assert made["contexts"] is content["contexts"]
