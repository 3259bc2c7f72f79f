"""Values that no object can contain are refused with their paths, whatever field they are in."""

import json
import math
from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.for_each import for_each
from tests.support.specs import ENGINE_RAY, GUIDE, PREFILL_DECODE, REMOVED, changed
from tests.toughness.corpus import at, places, put

HUGE = 10**5000
"""Python refuses to write it in decimal."""
NUMBERS = (
    *(10**29, -(10**29), HUGE, -HUGE, 2**31, 2**63, -1, -0.0, 1e308, math.nan, math.inf, True),
    *("9" * 5000, "9" * 5000 + "%", "1e999", "1e999%", "99999999999999999999%"),
)
TEXTS = (
    "\0",
    "a\0b",
    "\ud800",
    "a\nb",
    "\x1b[31m",
    "\x85",
    "a\u202eb",
    "\u2028",
    " ",
    "x" * 70_000,
)
UPDATE: dict[str, Any] = {
    "rollout_strategy.type": "ServingGroupRollingUpdate",
    "rollout_strategy.rolling_update_configuration": {"max_unavailable": 1, "partition": 0},
}
BASES = {
    "ray on native": ENGINE_RAY,
    "templates on native": GUIDE,
    "pair on kthena": changed(PREFILL_DECODE, {"backend": "kthena", **UPDATE}),
    "ray on lws": changed(ENGINE_RAY, {"backend": "lws", "network_topology": REMOVED}),
}


@for_each("name", BASES)
@for_each("number", range(len(NUMBERS + TEXTS)))
def test_no_field_breaks_the_compiler(name: str, number: int) -> None:
    args, value = BASES[name], (NUMBERS + TEXTS)[number]
    compile_serving(args)
    for place in places(args):
        if isinstance(at(args, place), dict | list):
            continue
        try:
            made = compile_serving(put(args, place, value))
        except SpecError as error:
            str(error).encode(errors="strict" if value != "\ud800" else "backslashreplace")
            continue
        written = json.dumps([each.body for each in made.manifests], allow_nan=False)
        assert "\\u0000" not in written
        written.encode()


REFUSED = {
    "max_unavailable": (
        "rollout_strategy.rolling_update_configuration.max_unavailable",
        10**29,
        "is a number of 97 bits; Kubernetes reads at most 64. Write a smaller number. [value]",
    ),
    "max_unavailable-32": (
        "rollout_strategy.rolling_update_configuration.max_unavailable",
        2**31,
        (
            "is 2147483648, but must be a count of at most 2147483647, or a percentage such as "
            "25%. Write such a value. [value]"
        ),
    ),
    "replicas": (
        "replicas",
        HUGE,
        "is a number of 16610 bits; Kubernetes reads at most 64. Write a smaller number. [value]",
    ),
    "infinite": (
        "roles[0].overlay.spec.terminationGracePeriodSeconds",
        math.inf,
        "is inf, and JSON has no such number. Write a finite number. [value]",
    ),
    "model-nul": (
        "roles[0].engine.model",
        "a\0b",
        (
            r"is 'a\x00b', with a NUL, where a program's argument or a variable ends. Remove the "
            r"character \x00. [value]"
        ),
    ),
    "model-line": (
        "roles[0].engine.model",
        "a\nb",
        (
            r"is 'a\nb', but must be text without control characters and line ends, and not only "
            "blanks. Write such a value. [value]"
        ),
    ),
    "argument": (
        "roles[0].engine.extra_args[0]",
        "--a\0",
        (
            r"is '--a\x00', with a NUL, where a program's argument or a variable ends. Remove the "
            r"character \x00. [value]"
        ),
    ),
    "half": (
        "labels.a",
        "\ud800",
        (
            r"contains '\ud800', half a character, which no cluster can store. Remove it, or write "
            "the whole character. [value]"
        ),
    ),
    "key": (
        "roles[0].hugging_face_token",
        {"name": "hf", "key": "a b"},
        (
            "is 'a b', but must be the key of a Secret: letters, digits, '-', '_' and '.'. Write "
            "such a value. [pattern]"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_names_its_path(case: str) -> None:
    path, value, told = REFUSED[case]
    with pytest.raises(SpecError) as raised:
        compile_serving(changed(ENGINE_RAY, {**UPDATE, path: value}))
    (found,) = raised.value.findings
    assert str(found) == f"{path}{'.key' if case == 'key' else ''}: {told}"


def test_all_are_told_at_once() -> None:
    wrong = {"replicas": HUGE, "namespace": "A", "roles[0].engine.model": "\0", "labels.\0": "x"}
    with pytest.raises(SpecError) as raised:
        compile_serving(changed(ENGINE_RAY, wrong))
    paths = [finding.path for finding in raised.value.findings]
    assert paths[:3] == ["replicas", "labels", "roles[0].engine.model"]
    assert "namespace" in paths
