"""The rules about what vLLM refuses when it starts, beside what its releases themselves refuse.

`python -m toolchain.engine_flags.verdicts` ran the code of each release and wrote the record.
"""

import json
from pathlib import Path

from kthena_components.core.findings import Finding, Level, rule_name
from kthena_components.core.rules.registry import CHECKS
from tests.support.for_each import for_each
from tests.support.startup import checked

RECORD = json.loads((Path(__file__).parent / "parallel_verdicts.json").read_text())
GPUS = 1024
"""As many as the releases were told that there are."""
RULES = {
    "context-parallel-layout", "data-parallel-layout", "executor-stated", "expert-balance",
    "memory-fraction-range", "moe-expert-shape", "scheduler-sizes", "tp-divides-heads",
}  # fmt: skip


def refusals(release: str, line: str) -> list[Finding]:
    checks = [check for check in CHECKS if rule_name(check) in RULES]
    name = f"vllm {release}"
    found = [finding for check in checks for finding in checked(check, name, line, gpus=GPUS)]
    return [finding for finding in found if finding.level is Level.MANDATORY]


def test_the_record_holds_both_verdicts_of_every_release() -> None:
    assert all(verdicts["refused"] and verdicts["taken"] for verdicts in RECORD.values())
    assert sum(len(lines) for verdicts in RECORD.values() for lines in verdicts.values()) > 500


@for_each("release", RECORD)
def test_what_a_release_refuses_is_refused(release: str) -> None:
    lines = RECORD[release]["refused"]
    assert [line for line in lines if not refusals(release, line)] == []


@for_each("release", RECORD)
def test_what_a_release_takes_is_not_refused(release: str) -> None:
    lines = RECORD[release]["taken"]
    assert {line: found for line in lines if (found := refusals(release, line))} == {}
