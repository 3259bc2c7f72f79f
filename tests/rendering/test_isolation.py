"""What a program may do that is run on files of a stranger, tried with programs that try it."""

import json
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kthena_components.rendering import isolation as caging
from kthena_components.rendering.isolation import Cage, cage

Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Make a program of some lines of Python."""

    def made(text: str) -> str:
        path = tmp_path / "program"
        path.write_text(f"#!{sys.executable} -I\nimport os, sys, time\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return made


@pytest.fixture
def inside() -> Iterator[Cage]:
    with cage() as made:
        yield made


def run(inside: Cage, program: str) -> tuple[str, str]:
    output = inside.folder / "out"
    why = inside.run([program], output)
    return why, output.read_text()


def test_it_is_told_nothing_that_is_secret_and_finds_no_other_program(
    inside: Cage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("HELM_PLUGINS", "/plugins")
    why, text = run(
        inside, program("import json; print(json.dumps([dict(os.environ), os.getcwd()]))")
    )
    seen, folder = json.loads(text)
    assert why == ""
    home = str(inside.folder / "home")
    assert folder == str(inside.folder)
    seen.pop("LC_CTYPE", None)  # what Python itself sets
    assert {name for name, value in seen.items() if value == home} == {
        *("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"),
    }
    assert list(Path(seen["PATH"]).iterdir()) == []
    assert {name: value for name, value in seen.items() if value != home} == {
        **dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
        **dict.fromkeys(("PATH", "KUBECONFIG"), str(inside.folder / "nothing")),
        "KUBERC": "off",
        "LC_ALL": "C.UTF-8",
    }


def test_it_reads_nothing_from_the_terminal(inside: Cage, program: Program) -> None:
    assert run(inside, program("print(repr(sys.stdin.read()))")) == ("", "''\n")


def test_it_is_ended_with_all_that_it_started(
    inside: Cage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caging, "SECONDS", 1)
    text = (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\nif child: print(child, flush=True)\ntime.sleep(600)"
    )
    why, out = run(inside, program(text))
    assert why == "it took longer than 1 s"
    for _ in range(100):
        if not Path(f"/proc/{int(out)}").exists() or _is_zombie(int(out)):
            return
        time.sleep(0.05)
    pytest.fail("the child is still there")


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_it_prints_no_more_than_a_file_may_be(
    inside: Cage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caging, "MOST_BYTES", 2**20)
    why, out = run(inside, program("while True: print('x' * 65536)"))
    assert why == "it is larger than the limit of 1 MiB" or "File too large" in why
    assert len(out) < 2**30  # not every kernel ends a write at the limit; it is looked at often


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_it_takes_no_more_memory_than_it_may(
    inside: Cage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caging, "MOST_MEMORY", 2**28)
    why, _ = run(inside, program("time.sleep(0.5)\nx = bytearray(2**30)\nprint(len(x))"))
    assert why == "MemoryError"


LOG = '# Warning: old\nE1123 08:11:04.012530   20453 run.go:72] "command failed" err='
SEVERAL = "<\n\ta: `\n\tb: <c>\n >"
QUOTED = r'"a \"b\""'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "sys.exit('first\\nError: the \\x1b[31mreason\\n\\n  of it')",
            r"the \x1b[31mreason of it",
        ),
        ("sys.exit('first\\nlast')", "last"),
        (f"sys.exit({LOG + SEVERAL!r})", "a: ` b: <c>"),
        (f"sys.exit({LOG + QUOTED!r})", 'a "b"'),
        (f"sys.exit({LOG + 'a'!r})", "a"),
        ("sys.exit('panic: too large\\n\\ngoroutine 1\\nx.go:3 +0x7f9')", "panic: too large"),
        ("sys.exit(3)", "it ended with 3"),
        ("sys.stderr.buffer.write(b'Error: \\xff'); sys.exit(1)", "�"),
    ],
    ids=["error", "last", "logged-lines", "logged-text", "logged", "crash", "nothing", "no-text"],
)
def test_why_it_failed_is_one_line(inside: Cage, program: Program, text: str, told: str) -> None:
    assert run(inside, program(text))[0] == told


def test_what_is_no_program_is_told(inside: Cage, tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_text("#!/nowhere/at/all\n")
    odd.chmod(0o755)
    assert run(inside, str(odd))[0] == "odd cannot be run: No such file or directory"


def test_nothing_is_left_behind() -> None:
    with cage() as made:
        folder = made.folder
        (folder / "home" / "x").write_text("x")
    assert not folder.exists()


def test_all_together_have_a_limit(inside: Cage, program: Program) -> None:
    over = Cage(inside.folder, inside.watcher, ends=0)
    assert run(inside, program("print(1)")) == ("", "1\n")
    told = over.run([program("print(1)")], inside.folder / "out")
    assert told == "all renderings together took longer than 600 s"
    assert inside.printed == 2
    inside.printed = 2**31
    assert run(inside, program("print(1)"))[0] == "all renderings together are larger than 1024 MiB"


def test_a_program_that_runs_is_stopped_at_the_end_of_all(inside: Cage, program: Program) -> None:
    inside.ends = time.monotonic() + 1
    why, _ = run(inside, program("time.sleep(600)"))
    assert why == "all renderings together took longer than 600 s"
