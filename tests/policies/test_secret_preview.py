"""Secrets under the real engine: what is wrong with them is told, and they are not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.policies.process import PACK
from tests.policies.test_preview import findings
from tests.support.engine import Run, Stack

pytestmark = pytest.mark.programs

PROGRAM = Path(__file__).with_name("secret_program")
TOKEN = "ochre-token of several words"  # noqa: S105 - opens nothing
PIECES = (
    *("pearl", "quartz", "raven", "sable", "1753", "onyx", "vale", "wheat", "xylem"),
    *TOKEN.split()[:1],
)
ENGINE = "spec.template.spec.containers[0].command"
ROLE = "spec.template.roles[0].entryTemplate.spec.containers[0].command"
NO_INTEGER = "takes an integer, not '[secret]'. Write a number. [engine-option-known]"
RANKS = (
    "breaks this rule with a value that is secret and so not shown: [secret]. Compare it with the "
    "rule: The ranks of an engine, TP × PP × DP, equal its pods × GPUs per pod. "
    "[world-size-equals-gpus]"
)
TOLD = {
    f"{ENGINE}: engine 'variable': --tensor-parallel-size {NO_INTEGER}",
    f"{ENGINE}: engine 'line': --max-model-len {NO_INTEGER}",
    f"{ENGINE}: engine 'url': --max-num-seqs {NO_INTEGER}",
    f"{ENGINE}: {RANKS}",
    f"{ROLE}: engine '[secret]': --tensor-parallel-size {NO_INTEGER}",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    stack = Stack.make(PROGRAM, "test", tmp_path_factory.mktemp("secrets"))

    def edit(config: dict[str, Any]) -> None:
        config["kubernetes:renderYamlToDirectory"] = "rendered"  # no cluster is needed

    stack.change(edit)
    stack.set_secret("token", TOKEN)
    levels = PACK / "levels" / "prod.json"
    return stack.preview_with_pack(levels)


def test_secrets_stop_a_preview_and_are_not_shown(run: Run) -> None:
    assert run.code != 0
    told = findings(run)
    assert set(told) >= TOLD
    assert {told[line] for line in TOLD} == {"mandatory"}
    assert all(line in run.text for line in TOLD)


def test_no_piece_of_a_secret_is_in_any_output(run: Run) -> None:
    for text in (run.text, json.dumps(run.events)):
        assert not [piece for piece in PIECES if piece in text]
