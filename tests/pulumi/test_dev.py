"""What a newcomer sees of the dev stack."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.engine import ROOT, Stack

pytestmark = pytest.mark.programs
TABLE: Final = """\
1 serving, 2 pods, 2 GPUs:
serving    role    groups    engines    pods    GPUs/pod    TP × PP × DP    world    GPUs    backend
---------  ------  --------  ---------  ------  ----------  --------------  -------  ------ \
 ---------
llama-8b   serve   1         1          2       1           1 × 2 × 1       2        2       native
total                                   2                                            2"""


def test_the_gpus_are_shown_before_anything_is_applied(tmp_path: Path) -> None:
    stack = Stack.make(ROOT, "dev", tmp_path)
    run = stack.preview()
    assert run.messages == [TABLE]
    shown = "\n".join(f"    {line}" for line in TABLE.splitlines())
    assert f"pulumi:pulumi:Stack (kthena-components-dev):\n{shown}\n" in run.text


def test_the_counts_are_exported(tmp_path: Path) -> None:
    stack = Stack.make(ROOT, "dev", tmp_path)
    stack.up()
    (row,) = stack.outputs["servings"]
    assert (row["serving"], row["role"], row["pods"], row["gpus"]) == ("llama-8b", "serve", 2, 2)
    assert stack.outputs["totals"] == {"servings": 1, "pods": 2, "gpus": 2}
    assert stack.outputs["endpoints"] == {"default/llama-8b": "http://llama-8b.default.svc:80"}
