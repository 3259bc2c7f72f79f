"""A waived finding is told apart in every format, is counted, and does not fail."""

import json

import pytest

from kthena_components.cli.check.reports import FORMATS
from tests.cli.conftest import Command, Write
from tests.support.manifests import COMMAND, SENTENCE, SUBJECT, WRONG

KEY = "waive.kthena-components/world-size-equals-gpus"
REASON = "a third node is on its way"
SAID = SENTENCE.replace(" [", f" Waived until 9999-12-31: {REASON}. [")


def waived(text: str) -> str:
    """Give the serving with too many GPUs, and a waiver in line 6."""
    annotations = f'  namespace: serving\n  annotations:\n    {KEY}: "{text}"\n'
    return WRONG.replace("  namespace: serving\n", annotations)


@pytest.fixture
def manifest(write: Write) -> None:
    write("llama.yaml", waived(f"9999-12-31 {REASON}"))


@pytest.mark.usefixtures("manifest")
@pytest.mark.parametrize("form", FORMATS)
def test_what_is_waived_does_not_fail(run: Command, form: str) -> None:
    done = run("llama.yaml", "--format", form)
    assert (done.status, done.err) == (0, "")
    assert REASON in done.out


@pytest.mark.usefixtures("manifest")
def test_text_counts_what_is_waived(run: Command) -> None:
    assert run("llama.yaml").lines == [
        f"llama.yaml:18: waived: {SUBJECT}: {COMMAND}: {SAID}",
        "1 object checked in 1 file: 0 mandatory, 0 advisory, 0 not checked, 1 waived",
    ]


@pytest.mark.usefixtures("manifest")
def test_json_has_the_day_and_the_reason(run: Command) -> None:
    (row,) = json.loads(run("llama.yaml", "--format", "json").out)
    assert row["level"] == "waived"
    assert row["waiver"] == {"until": "9999-12-31", "reason": REASON}


@pytest.mark.usefixtures("manifest")
def test_sarif_has_a_suppression(run: Command) -> None:
    (made,) = json.loads(run("llama.yaml", "--format", "sarif").out)["runs"]
    (result,) = made["results"]
    assert result["suppressions"] == [
        {"kind": "inSource", "status": "accepted", "justification": f"until 9999-12-31: {REASON}"}
    ]


@pytest.mark.usefixtures("manifest")
def test_markdown_and_github_say_waived(run: Command) -> None:
    assert run("llama.yaml", "--format", "markdown").lines[4].startswith("| waived | ")
    start = "::notice file=llama.yaml,line=18,title=world-size-equals-gpus (waived)::"
    assert run("llama.yaml", "--format", "github").lines[0].startswith(start)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2025-01-01 it was on its way", "ended on 2025-01-01, and today is "),
        ("9999-12-31", "gives no reason after 9999-12-31. "),
        ("soon", "begins with 'soon', which is not a day. "),
    ],
)
def test_a_refused_waiver_is_told_at_its_line(
    run: Command, write: Write, text: str, said: str
) -> None:
    write("llama.yaml", waived(text))
    done = run("llama.yaml")
    assert done.lines[0].startswith("llama.yaml:18: mandatory: ")
    assert done.lines[1].startswith(
        f"llama.yaml:7: mandatory: {SUBJECT}: metadata.annotations.{KEY}: {said}"
    )
    assert done.status == 1


@pytest.mark.usefixtures("manifest")
def test_a_disabled_rule_has_nothing_to_waive_and_is_not_spoken_of(
    run: Command, write: Write
) -> None:
    write("levels.json", '{"world-size-equals-gpus": "disabled"}')
    done = run("llama.yaml", "--level", "levels.json")
    assert (len(done.lines), done.status) == (1, 0)
