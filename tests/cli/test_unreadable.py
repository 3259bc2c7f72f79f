"""What cannot be read is named with its place and its limit, and the rest is checked."""

import io
import json

import pytest
import yaml

from kthena_components.reading import files
from kthena_components.reading import loader as guards
from tests.cli.conftest import Command, Write
from tests.support.manifests import SUBJECT, WRONG, pod

HEAD = "apiVersion: v1\nkind: Pod\n"
BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))

CASES = {
    "a syntax error": (f"{HEAD}spec: [1, 2\nmetadata: {{}}\n", ":4:9: is not valid YAML: "),
    "an unknown tag": (
        f"{HEAD}spec: !python/object/apply:os.system [exit]\n",
        ":3:7: is not valid YAML: could not determine a constructor for the tag",
    ),
    "a tag of Python": (
        f"{HEAD}spec: !!python/object/apply:os.system [exit]\n",
        ":3:7: is not valid YAML: could not determine a constructor",
    ),
    "invalid UTF-8": (
        f"{HEAD}metadata: ".encode() + b"\xff\n",
        ":3:11: is not UTF-8: byte 0xff cannot be decoded",
    ),
    "a control character": (
        f"{HEAD}metadata: \x07\n",
        ":3:11: is not valid YAML: character U+0007",
    ),
    "an anchor in itself": (
        f"{HEAD}spec: &a\n  containers: [*a]\n",
        ":3:7: contains itself, by an alias inside its own anchor",
    ),
    "an alias bomb": (
        f"{HEAD}a0: &a0 [x]\n{BOMB}",
        ": expands to more than 1,000,000 values by its aliases, the limit of a document",
    ),
    "a merge bomb": (
        f"{HEAD}a0: &a0 {{x: 1}}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 9)),
        ": expands to more than 1,000,000 values by its aliases, the limit of a document",
    ),
    "a chain of aliases": (
        f"{HEAD}a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 600)),
        ": is nested more deeply than 250 levels, the limit",
    ),
    "deep brackets": (
        f"{HEAD}spec: {'[' * 100_000}\n",
        ":3:256: is nested more deeply than 250 levels, the limit",
    ),
    "deep dashes": (
        f"{HEAD}spec:\n{'- ' * 100_000}a\n",
        ":4:499: is nested more deeply than 250 levels, the limit",
    ),
    "deep columns": (
        HEAD + "\n".join(f"{' ' * n}a:" for n in range(600)),
        ": is nested more deeply than 250 levels, the limit",
    ),
    "a map as a key": (f"{HEAD}spec: {{? {{a: 1}} : 2}}\n", "found a map or a list as a key"),
    "an odd timestamp": (f"{HEAD}spec: !!timestamp never\n", ": "),
}


@pytest.mark.parametrize(("content", "told"), CASES.values(), ids=CASES)
def test_a_file_is_named_with_its_fault_and_the_others_are_checked(
    run: Command, write: Write, content: str | bytes, told: str
) -> None:
    write("a.yaml", content)
    write("b.yaml", WRONG)
    done = run("a.yaml", "b.yaml")
    assert done.err.startswith("a.yaml:")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert done.lines[0].startswith(f"b.yaml:16: mandatory: {SUBJECT}: ")
    assert done.lines[-1].endswith(": 1 mandatory, 0 advisory, 0 not checked, 1 unreadable")
    assert done.status == 2


def test_the_documents_around_a_wrong_one_are_checked(run: Command, write: Write) -> None:
    write("a.yaml", f"{pod('a')}---\na: [\n---\n%TAG ! x\n---\n{pod('b')}")
    done = run("a.yaml")
    assert [line.split(": ")[0] for line in done.lines[:-1]] == ["a.yaml:7", "a.yaml:21"]
    assert done.err.startswith("a.yaml:12:1: is not valid YAML: while parsing a flow ")
    assert done.status == 2


KIND = "kind: ModelServing"
SPEC = "spec:\n  sch"
UNSURE = {
    "a tag": (WRONG.replace(KIND, "kind: !!binary TW9kZWxTZXJ2aW5n"), ":2:7: has TW9kZWxTZXJ2aW5n"),
    "a merge": (
        WRONG.replace(KIND, "kind: ConfigMap\n<<: {kind: ModelServing}"),
        ":3:1: states 'kind' twice",
    ),
    "a kind twice": (WRONG.replace(KIND, f"kind: ConfigMap\n{KIND}"), ":3:1: states 'kind' twice"),
    "a tag inside": (WRONG.replace(SPEC, f"x: !a b # {{{{\n{SPEC}"), ":6:4: is not valid YAML: "),
    "too deep": (WRONG.replace(SPEC, f"x: {'[' * 300}{']' * 300}\n{SPEC}"), ":6:253: is nested"),
}
DEEP = f'{{"kind": "Pod", "apiVersion": {"[" * 100_000}'
INVALID = b'{"k\\u0069nd": "Pod", "\xff": 1}'
UNSURE_FILES = {
    "JSON that is too deep": ("a.json", DEEP, ":1: is nested"),
    "no UTF-8": ("a.yaml", WRONG.encode() + b"# \xff\n", ": is not UTF-8: byte 0xff"),
    "no UTF-8 in JSON": ("a.json", INVALID, ": is not UTF-8: byte 0xff"),
    "a colon in a list": ("a.yaml", f"{WRONG}x: [a:, b]\n", " found unexpected ':'"),
}
BOM = "\ufeff"
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
POD = json.dumps(yaml.safe_load(WRONG))
READ = {
    "a BOM after a marker": ("a.yaml", f"{OTHER}{BOM}{WRONG}"),
    "a BOM after a comment": ("a.yaml", f"{BOM}# a\n\n{BOM}{BOM}{WRONG}"),
    "YAML in a .json": ("a.json", WRONG),
    "more YAML in a .json": ("a.json", f"{OTHER}{WRONG}"),
    "a comment in a .json": ("a.json", f"# a\n{POD}"),
    "JSON after a marker": ("a.json", f"---\n{POD}"),
    "JSON before garbage": ("a.yaml", f"{POD} garbage"),
}
REFUSED = {
    "another case": (WRONG.replace(KIND, "Kind: ModelServing"), ":2:1: has the key 'Kind', which"),
    "a number": (WRONG.replace(KIND, "kind: 8"), ":2:7: has 8 as its kind, which not every"),
    "a template": (WRONG.replace(KIND, "kind: {{ .Values.kind }}"), ":2:7: is a template with {{"),
}


@pytest.mark.parametrize(("text", "told"), UNSURE.values(), ids=UNSURE)
def test_what_kubectl_may_read_as_an_object_fails_the_run_wherever_it_is(
    run: Command, write: Write, text: str, told: str
) -> None:
    write("a.yaml", text)
    for done in (run("a.yaml"), run(".")):
        assert done.err.startswith(f"a.yaml{told}")
        assert done.status == 2


@pytest.mark.parametrize(("name", "text", "told"), UNSURE_FILES.values(), ids=UNSURE_FILES)
def test_a_file_that_kubectl_may_read_fails_the_run_wherever_it_is(
    run: Command, write: Write, name: str, text: str | bytes, told: str
) -> None:
    write(name, text)
    for done in (run(name), run(".")):
        assert done.err.startswith(name)
        assert told in done.err
        assert done.status == 2


@pytest.mark.parametrize(("name", "text"), READ.values(), ids=READ)
def test_objects_that_kubectl_reads_are_checked(
    run: Command, write: Write, name: str, text: str
) -> None:
    write(name, text)
    done = run(".")
    assert done.lines[-1].startswith("1 object checked in 1 file")
    assert ": 1 mandatory" in done.lines[-1]
    assert done.status == 1


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED)
def test_an_object_that_kubectl_refuses_is_not_passed_over(
    run: Command, write: Write, text: str, told: str
) -> None:
    write("a.yaml", text)
    named, walked = run("a.yaml"), run(".")
    assert named.err.startswith(f"a.yaml{told}")
    assert walked.err == named.err
    assert (named.status, walked.status, run("--strict-read", ".").status) == (2, 0, 2)
    assert walked.lines[-1].endswith("1 file not read")


def test_objects_in_any_list_are_checked(run: Command, write: Write) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nitems:\n- {WRONG.replace(chr(10), f'{chr(10)}  ')}"
    write("a.yaml", f"{text}\n")
    assert run("a.yaml").lines[-1].startswith("1 object checked in 1 file: 1 mandatory")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1,\n]', "a.json:2:1: is not JSON: "),
        ("[" * 100_000, "a.json:1: is nested too deeply to be read"),
        ("[" * 600 + "]" * 600, "a.json:1: is nested more deeply than 250 levels, the limit"),
    ],
    ids=["syntax", "very deep", "deep"],
)
def test_json_that_cannot_be_read_is_named(
    run: Command, write: Write, text: str, told: str
) -> None:
    write("a.json", text)
    done = run("a.json")
    assert done.err.startswith(told)
    assert done.status == 2


def test_a_file_beyond_the_limit_is_not_read(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 2**20)
    write("a.yaml", " " * (2**20 + 1))
    for done in (run("a.yaml"), run(".")):
        assert done.err == "a.yaml: is larger than the limit of 1 MiB a file\n"
        assert done.status == 2


def test_a_file_that_is_not_there_is_named(run: Command, write: Write) -> None:
    write("b.yaml", WRONG)
    done = run("a.yaml", "a\0b", "b.yaml")
    assert done.err.splitlines() == [
        "a.yaml: cannot be read: No such file or directory",
        "a\\x00b: cannot be read: embedded null byte",
    ]
    assert "1 object checked in 1 file: 1 mandatory" in done.lines[-1]
    assert done.status == 2


def test_standard_input_is_named(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: [")))
    assert run("-").err.startswith("<stdin>:2:1: is not valid YAML: ")


def test_a_file_of_another_unicode_is_read(run: Command, write: Write) -> None:
    write("a.yaml", WRONG.encode("utf-16"))
    write("b.yaml", WRONG.encode("utf-8-sig"))
    assert "2 objects checked in 2 files: 2 mandatory" in run("a.yaml", "b.yaml").out


def test_a_document_at_the_limit_of_depth_is_read(run: Command, write: Write) -> None:
    # The map itself is one level.
    inside = guards.MOST_DEPTH - 1
    write("a.yaml", f"{HEAD}spec: {{containers: [{{name: b}}]}}\nx: {'[' * inside}{']' * inside}\n")
    assert run("a.yaml").status == 0


def test_aliases_and_merges_within_the_limit_are_read(run: Command, write: Write) -> None:
    text = WRONG.replace(
        "                  requests: {nvidia.com/gpu: 8}", "                  requests: {<<: *gpus}"
    ).replace("limits: {nvidia", "limits: &gpus {nvidia", 1)
    write("a.yaml", text)
    assert "1 mandatory, 0 advisory" in run("a.yaml").lines[-1]


def test_scalars_are_read_as_kubernetes_reads_them(run: Command, write: Write) -> None:
    text = WRONG.replace("name: llama", "name: 22:30").replace("serving\n", "2026-01-01\n", 1)
    write("a.yaml", text)
    assert "ModelServing 2026-01-01/22:30: " in run("a.yaml").lines[0]


@pytest.mark.parametrize("spec", ["a", "[a]", "8", "{containers: a}"])
def test_a_pod_template_that_is_no_map_is_no_traceback(
    run: Command, write: Write, spec: str
) -> None:
    write(
        "m/a.yaml",
        f"apiVersion: apps/v1\nkind: StatefulSet\nspec: {{template: {{spec: {spec}}}}}\n",
    )
    assert run("m").status in {0, 1}
