"""A text from outside stays a string in every output: no key, no statement, no line, no traceback.

The judges are PyYAML, Python's own parser, Node's parser and Bash.
"""

import ast
import copy
import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kthena_components.cli.main import main
from kthena_components.core.values.display import lone_surrogate, shell_word
from tests.cli.previews import events, message, row, serving, step, urn, violation
from tests.support.convertible import leader_worker_set, model_serving, service
from tests.toughness.corpus import at, bases, places, put

ODD = (
    *(
        "\n",
        "\r",
        "\x00",
        "\x0b",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\u202e",
    ),
    *("\u200b", "\ud800", "\udcff", "\ufffe", "\U000e0001", "é", "\U0001f600"),
    *("config:", "kthena-components:output: up", '"', "'", "\\", '"""', "*/", "//", "${x}", "`id`"),
    *("__import__('os').system('id')", "- a", "# b", "{{ .x }}", "| x |", "::error::", "##[error]"),
    *("<<: *a", "!!python/object", "%YAML", "---", "@team", "\t", " ", "a"),
)
TEXTS = st.lists(st.sampled_from(ODD), min_size=1, max_size=6).map("".join)
NAMES = TEXTS.map(
    # Halves from \udc80 on stand for bytes that are not UTF-8; no name has others.
    lambda text: text.replace("/", "").replace("\0", "").replace("\ud800", "\udc80")[:40]
).filter(lambda text: text.strip(". ") != "")
MANY = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NUMBER = itertools.count()
HALVES = ("\ud800", "a\udc00", "a\ud83d")
FILES = {"stack": "Pulumi.converted.yaml", "python": "__main__.py", "typescript": "index.ts"}


@st.composite
def bodies(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw an object that `convert` reads, with an odd text somewhere, as a value or as a key."""
    made = [draw(st.sampled_from([leader_worker_set, model_serving]))()]
    if draw(st.booleans()):
        made.append(service(role="leader"))
    body = made[-1]
    found = [each for each in places(body) if isinstance(at(body, each), str)]
    body = put(body, draw(st.sampled_from(found)), draw(TEXTS))
    if draw(st.booleans()):
        body["metadata"].setdefault("annotations", {})[draw(TEXTS)] = draw(TEXTS)
    made[-1] = body
    return made


def converted(tmp: Path, name: str, text: str, target: str) -> tuple[int, dict[str, bytes]]:
    """Convert a file of this name, and return the files that were written."""
    folder = tmp / f"f{next(NUMBER)}"
    folder.mkdir()
    (folder / name).write_text(text, encoding="utf-8")
    words = ["convert", str(folder / name), "--to", target, "-o", str(folder / "out")]
    told = io.StringIO()
    with redirect_stderr(told):
        status = main(words)
    sys.stderr.write(told.getvalue())
    if offered := re.findall(r"(?m)^To convert without (?:it|them): (.*)$", told.getvalue()):
        status = main([*words, *shlex.split(offered[0])])
    out = folder / "out"
    return status, {each.name: each.read_bytes() for each in out.iterdir()} if out.exists() else {}


def _document(bodies: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, bodies))


@MANY
@given(bodies=bodies(), target=st.sampled_from(["stack", "python", "typescript", "kthena", "lws"]))
def test_odd_texts_in_objects_are_refused_or_read_back(
    tmp_path: Path, bodies: list[dict[str, Any]], target: str
) -> None:
    status, files = converted(tmp_path, "model.json", _document(bodies), target)
    assert status in (0, 1, 2)
    assume(status == 0)
    (written,) = files.values()
    text = written.decode()
    assert all(char.isprintable() or char in "\n\t" for char in text)
    _read_back(text, target)


def _read_back(text: str, target: str) -> Any:
    """Parse what was written, and return what it says without comments."""
    if target == "python":
        head, imported, *calls = ast.parse(text).body
        assert isinstance(head, ast.Expr)
        assert isinstance(head.value, ast.Constant)
        assert ast.unparse(imported) == "from kthena_components import ModelServing"
        for call in calls:
            assert isinstance(call, ast.Expr)
            assert isinstance(call.value, ast.Call)
            assert ast.unparse(call.value.func) == "ModelServing"
            assert [type(ast.literal_eval(each)) for each in call.value.args] == [str, dict]
        return [ast.unparse(call) for call in calls]
    if target == "typescript":
        first, rest = text.split("\n", 1)
        assert first.startswith("// Servings converted from ")
        assert rest.startswith('import * as kthena from "@pulumi/kthena";\n\nnew kthena.')
        return rest
    read = list(yaml.safe_load_all(text))
    if target == "stack":
        assert [list(each) for each in read] == [["config"]]
        assert set(read[0]["config"]) == {"kthena-components:output", "kthena-components:servings"}
    return read


@MANY
@given(name=NAMES, target=st.sampled_from(["stack", "python", "typescript", "kthena"]))
def test_the_name_of_a_file_adds_nothing(tmp_path: Path, name: str, target: str) -> None:
    text = _document([model_serving()])
    status, odd = converted(tmp_path, name, text, target)
    assert (status, len(odd)) == (0, 1)
    ((written, found),) = odd.items()
    assert written == FILES.get(target, name)
    _, plain = converted(tmp_path, "model.yaml", text, target)
    (expected,) = plain.values()
    assert _read_back(found.decode(), target) == _read_back(expected.decode(), target)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node on PATH")
def test_node_parses_every_odd_text(tmp_path: Path) -> None:
    serving = model_serving()
    fine = [odd for odd in ODD if odd != "\0" and not lone_surrogate(odd)]  # those are refused
    env = [{"name": f"E{n}", "value": f"a{odd}b"} for n, odd in enumerate(fine)]
    serving["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]["containers"][0]["env"] = env
    for name in ("a\u2028b\nc\udcff.json", "*/.json"):
        status, files = converted(
            tmp_path, name.replace("/", ""), _document([serving]), "typescript"
        )
        assert status == 0
        (tmp_path / "index.mjs").write_bytes(files["index.ts"])
        ran = subprocess.run(
            ["node", "--check", str(tmp_path / "index.mjs")], capture_output=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, b"")
        program = (
            files["index.ts"]
            .decode()
            .replace(
                'import * as kthena from "@pulumi/kthena";',
                "const kthena = {ModelServing: class {constructor(name, args) "
                "{process.stdout.write(JSON.stringify(args));}}};",
            )
        )
        (tmp_path / "run.mjs").write_text(program)
        ran = subprocess.run(["node", str(tmp_path / "run.mjs")], capture_output=True, check=True)
        given_env = json.loads(ran.stdout)["roles"][0]["entryTemplate"]["spec"]["containers"][0][
            "env"
        ]
        assert [each for each in given_env if each["name"].startswith("E")] == env


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("target", ["stack", "python", "typescript", "kthena"])
def test_half_a_character_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], half: str, target: str
) -> None:
    body = model_serving()
    body["metadata"]["annotations"] = {"a": half}
    status, files = converted(tmp_path, "model.json", _document([body]), target)
    told = capsys.readouterr().err
    assert (status, files, told.count("\n")) == (2, {}, 1)
    shown = f"\\u{ord(half[-1]):04x}"
    assert told.endswith(
        f"model.json:1: ModelServing serving/llama contains {shown}, half a character, which no "
        "cluster can store: remove it, or write the whole character\n"
    )


@MANY
@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_reads_each_quoted_word_as_it_is(texts: list[str]) -> None:
    texts = [text.replace("\0", "") for text in texts]
    texts = [text for text in texts if not any("\ud800" <= char <= "\udfff" for char in text)]
    line = " ".join(map(shell_word, texts))
    assert line.isprintable()
    ran = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, env={}
    )
    assert ran.stdout.decode().split("\0")[:-1] == (texts or [""])


def test_a_command_that_convert_suggests_runs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = model_serving()
    body["metadata"]["annotations"] = {f"$(touch {tmp_path}/ran); a\n'b": "x"}
    converted(tmp_path, "model.json", _document([body]), "lws")
    path = tmp_path / "m.json"
    path.write_text(_document([body]))
    main(["convert", str(path), "--to", "lws"])
    told = capsys.readouterr().err
    flags = next(line for line in told.splitlines() if line.startswith("To convert without "))
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {flags.partition(': ')[2]}"],
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert not (tmp_path / "ran").exists()
    assert main(["convert", str(path), "--to", "lws", *words.split("\0")[:-1]]) == 0


FORMATS = ("text", "json", "sarif", "markdown", "github")


@MANY
@given(data=st.data())
def test_check_shows_every_text_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    body = bases()[data.draw(st.sampled_from(sorted(bases())))]
    for _ in range(data.draw(st.integers(1, 3))):
        found = [each for each in places(body) if isinstance(at(body, each), str)]
        body = put(body, data.draw(st.sampled_from(found)), data.draw(TEXTS))
    folder = tmp_path / f"c{next(NUMBER)}"
    folder.mkdir()
    file = folder / f"{data.draw(NAMES)}.json"
    file.write_text(json.dumps(body))
    named = data.draw(st.sampled_from([folder, file]))
    form = data.draw(st.sampled_from(FORMATS))
    status = main(["check", str(named), "--format", form])
    seen = capsys.readouterr()
    assert status in (0, 1)
    _is_plain(seen.out + seen.err)
    if form in ("json", "sarif"):
        json.loads(seen.out)


def _is_plain(text: str) -> None:
    assert [line for line in text.split("\n") if not line.isprintable()] == []


@MANY
@given(data=st.data())
def test_review_shows_every_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    text = st.one_of(TEXTS, st.just("llama"))
    rows = [row(serving=data.draw(text), role=data.draw(text), namespace=data.draw(text))]
    told = [
        serving(None, rows),
        message(data.draw(text)),
        violation(data.draw(text), urn("a:b:C", data.draw(text))),
        step("create", urn("kubernetes:core/v1:Pod", data.draw(text)), None, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": data.draw(text)},
        }),
    ]  # fmt: skip
    file = tmp_path / f"p{next(NUMBER)}.jsonl"
    file.write_text(events(*told))
    flags = data.draw(st.sampled_from([[], ["--json"]]))
    try:
        status = main(["review", *flags, f"prod={file}"])
    except SystemExit as left:
        status = int(left.code or 0)
    seen = capsys.readouterr()
    assert status in (0, 1, 2, 3)
    _is_plain(seen.err)
    shown = seen.out.replace("\u200b", "")  # splits mentions
    _is_plain(shown)


def test_names_that_are_not_utf_8_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"m\xff\n\xe2\x80\xaex")
    Path(odd).mkdir()
    wrong = copy.deepcopy(model_serving())
    Path(odd, f"{odd}.json").write_text(json.dumps(wrong))
    Path(odd, "kustomization.yaml").write_text(f"resources: [{json.dumps('x')}]\n")
    Path(odd, "Chart.yaml").write_text("a: [\n")
    for arguments in (["check", odd], ["check", f"{odd}/{odd}.json"], ["policy-pack", f"{odd}/p"]):
        main(arguments)
        seen = capsys.readouterr()
        _is_plain(seen.out + seen.err)
