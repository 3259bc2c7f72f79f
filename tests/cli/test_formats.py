"""Each format says the same, in the shape that its readers expect."""

import json
from pathlib import Path
from typing import Any

import pytest

from kthena_components.cli.check.reports import FORMATS
from tests.cli.conftest import Command, Write
from tests.support.manifests import ADVISED, COMMAND, SENTENCE, SUBJECT, UNKNOWN, WRONG, pod


@pytest.fixture
def folder(write: Write) -> None:
    write("m/advised.yaml", ADVISED)
    write("m/broken.yaml", "a: [")
    write("m/unknown.yaml", UNKNOWN)
    write("m/wrong.yaml", WRONG)


@pytest.mark.usefixtures("folder")
def test_json_is_a_list_of_objects(run: Command) -> None:
    done = run("m", "--format", "json")
    rows: list[dict[str, Any]] = json.loads(done.out)
    assert [row["level"] for row in rows] == ["advisory", "advisory", "unknown", "mandatory"]
    assert rows[-1] == {
        "file": "m/wrong.yaml",
        "line": 16,
        "kind": "ModelServing",
        "namespace": "serving",
        "name": "llama",
        "level": "mandatory",
        "rule": "world-size-equals-gpus",
        "path": COMMAND,
        "seen": SENTENCE.partition(". ")[0],
        "remedy": "set pipeline to 3, or give the engine 2 pods",
        "fixes": [[{"path": COMMAND, "option": "--pipeline-parallel-size", "value": 3}]],
        "message": f"{COMMAND}: {SENTENCE}",
    }


@pytest.mark.usefixtures("folder")
def test_sarif_has_the_fields_that_the_standard_requires(run: Command) -> None:
    done = run("m", "--format", "sarif")
    log = json.loads(done.out)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (made,) = log["runs"]
    driver = made["tool"]["driver"]
    assert driver["name"] == "kthena-components"
    rules = {rule["id"]: rule for rule in driver["rules"]}
    assert len(rules) == len(driver["rules"])
    for rule in rules.values():
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"].startswith(f"{rule['id']}: ")
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
    for result in made["results"]:
        assert result["ruleId"] in rules
        assert result["message"]["text"]
    levels = [result["level"] for result in made["results"]]
    assert levels == ["warning", "warning", "note", "error"]
    assert made["results"][-1] == {
        "ruleId": "world-size-equals-gpus",
        "level": "error",
        "message": {"text": f"{SUBJECT}: {COMMAND}: {SENTENCE}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "m/wrong.yaml"},
                    "region": {"startLine": 16},
                }
            }
        ],
        "properties": {
            "fixes": [[{"path": COMMAND, "option": "--pipeline-parallel-size", "value": 3}]]
        },
    }


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("strict", [True, False])
def test_sarif_says_what_could_not_be_read(run: Command, strict: bool) -> None:
    asked = ["--strict-read"] if strict else []
    (made,) = json.loads(run("m", "--format", "sarif", *asked).out)["runs"]
    (invocation,) = made["invocations"]
    assert invocation["executionSuccessful"] is not strict
    told, *counted = invocation["toolExecutionNotifications"]
    assert told["level"] == ("error" if strict else "warning")
    assert [each["message"]["text"] for each in counted] == ([] if strict else ["1 file not read"])
    assert told["message"]["text"].startswith("m/broken.yaml:2:1: is not valid YAML")
    (at,) = told["locations"]
    assert at["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 1}


def test_sarif_names_files_by_uris(run: Command, write: Write, tmp_path: Path) -> None:
    write("a b.yaml", pod())
    found = [
        json.loads(run(path, "--format", "sarif").out)["runs"][0]["results"][0]["locations"][0]
        for path in ("a b.yaml", f"{tmp_path}/a b.yaml")
    ]
    uris = [at["physicalLocation"]["artifactLocation"]["uri"] for at in found]
    assert uris == ["a%20b.yaml", f"file://{tmp_path}/a%20b.yaml"]


@pytest.mark.usefixtures("folder")
def test_github_gets_one_workflow_command_for_each_finding(run: Command) -> None:
    done = run("m", "--format", "github")
    starts = [line.split(" ")[0] for line in done.lines[:-1]]
    assert starts == ["::warning", "::warning", "::warning", "::notice", "::error"]
    told = "file=m/broken.yaml,line=2,col=1,title=unreadable::m/broken.yaml:2:1: is not valid YAML"
    assert done.lines[2].startswith(f"::warning {told}")
    assert run("m", "--format", "github", "--strict-read").lines[2].startswith(f"::error {told}")
    assert done.lines[-2] == (
        "::error file=m/wrong.yaml,line=16,title=world-size-equals-gpus::"
        f"{SUBJECT}: {COMMAND}: {SENTENCE}"
    )
    assert done.lines[-1].startswith("3 objects checked in 4 files: ")


def test_github_commands_are_escaped(run: Command, write: Write) -> None:
    write("50%,a:b.yaml", pod('"x\\r\\n::error::100%"'))
    done = run("50%,a:b.yaml", "--format", "github")
    assert done.lines[0].startswith(
        "::error file=50%25%2Ca%3Ab.yaml,line=7,title=world-size-equals-gpus::"
        "Pod x\\x0d\\x0a::error::100%25: "
    )
    assert len(done.lines) == 3


@pytest.mark.usefixtures("folder")
def test_markdown_is_counts_and_a_table(run: Command) -> None:
    lines = run("m", "--format", "markdown", "--strict-read").lines
    counts = "1 mandatory, 2 advisory, 1 not checked, 1 unreadable"
    assert lines[:4] == [
        f"**3 objects checked in 4 files: {counts}**",
        "",
        "| level | where | object | finding |",
        "|---|---|---|---|",
    ]
    told = f"{COMMAND}: {SENTENCE}".replace("[", "\\[").replace("]", "\\]")
    assert lines[7] == f"| mandatory | m/wrong.yaml:16 | {SUBJECT} | {told} |"
    assert lines[8:11] == ["", "Could not be read:", ""]
    assert lines[11].startswith("- m/broken.yaml:2:1: is not valid YAML")


def test_markdown_takes_nothing_in_a_name_for_its_own(run: Command, write: Write) -> None:
    write("a.yaml", pod('"a|b <img> `c` @team\\n# d"'))
    row = run("a.yaml", "--format", "markdown").lines[4]
    assert "| Pod a\\|b &lt;img&gt; \\`c\\` @&#8203;team\\\\x0a\\# d |" in row


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_found_is_said_in_every_format(run: Command, write: Write, form: str) -> None:
    write("a.yaml", "a: 1\n")
    done = run("a.yaml", "--format", form)
    assert (done.status, done.err) == (0, "")
    if form in {"json", "sarif"}:
        assert json.loads(done.out) is not None
    else:
        assert "0 objects checked in 1 file" in done.out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", FORMATS)
def test_the_status_is_the_same_in_every_format(run: Command, form: str) -> None:
    assert run("m", "--format", form, "--strict-read").status == 2
    assert run("m", "--format", form).status == 1
    assert run("m/wrong.yaml", "--format", form).status == 1
    assert run("m/advised.yaml", "--format", form).status == 0


def test_text_that_no_encoding_has_is_written_all_the_same(run: Command, write: Write) -> None:
    body = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\\ud800"}, "spec": SPEC}'
    spec = {
        "containers": [
            {"args": ["vllm", "serve", "m"], "resources": {"limits": {"nvidia.com/gpu": 2}}}
        ]
    }
    write("a.json", body.replace("SPEC", json.dumps(spec)))
    for form in FORMATS:
        assert run("a.json", "--format", form).status == 1
