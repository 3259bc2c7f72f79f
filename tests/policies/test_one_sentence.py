"""TP 8 × PP 2 on 3 × 8 GPUs, however one hears of it: one sentence, and only the path differs."""

import json
from pathlib import Path

import pytest

from kthena_components.cli.main import main
from kthena_components.cli.review.comment import write_comment
from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import reviewed
from tests.cli.previews import events, message, urn, violation
from tests.policies.broken import emitted
from tests.policies.objects import Args, type_of
from tests.policies.test_wording import FIELD, component, pack
from tests.support.specs import ENGINE_RAY, changed

ARGS: Args = changed(ENGINE_RAY, {"roles[0].worker_replicas": 2})
SENTENCE = (
    "engine 'decode' starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. Set "
    "pipeline to 3, or give the engine 2 pods. [world-size-equals-gpus]"
)


def of_rule(lines: list[str]) -> list[str]:
    return [line for line in lines if line.endswith("[world-size-equals-gpus]")]


@pytest.mark.parametrize("backend", ["native", "kthena"])
def test_a_component_and_the_pack_say_it(backend: str) -> None:
    said = of_rule(component(ARGS, backend))
    assert [FIELD.sub("", line) for line in said] == [SENTENCE]
    assert of_rule(pack(ARGS, backend)) == [SENTENCE]


def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (body,) = emitted(ARGS, "kthena")[:1]
    (tmp_path / "serving.json").write_text(json.dumps(body))
    assert main(["check", str(tmp_path)]) == 1
    (line,) = of_rule(capsys.readouterr().out.splitlines())
    assert line.endswith(f": {SENTENCE}")


def test_the_comment_on_a_pull_request_says_it_once() -> None:
    (body,) = emitted(ARGS, "kthena")[:1]
    of = urn(type_of(body), "chat")
    told = violation(f"spec.template.roles[0]: {SENTENCE}", of)
    refusal = f"stack 'prod' is refused: 1 problem\n  servings[0].roles[0]: {SENTENCE}"
    for text in (events(told), events(message(refusal)), events(message(refusal), told)):
        comment = write_comment([reviewed(parse_preview("prod", text))])
        assert comment.count(SENTENCE) == 1
