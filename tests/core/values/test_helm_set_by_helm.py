"""For any parameter of Argo CD: we read the values that the real Helm renders, or none."""

import json
import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kthena_components.core.values.unknown import Unknown
from kthena_components.core.values.values_in_text import parsed, steps_of, with_value
from tests.support.programs import program

pytestmark = pytest.mark.programs
DRAWN, AT_ONCE = 1200, 200
KEYS = ["a", "b", r"nvidia\.com/gpu", r"x\,y", r"p\=q", r"l\[0\]", r"w\\", "a-b", "0"]
PIECES = ["a", "8", "0", "-", "+", ",", r"\,", "{", "}", r"\{", r"\}", "\\", r"\\", ".", "=", " ",
          "null", "true", "é", "[0]", "\n"]  # fmt: skip
WHOLE = ["", "null", "NULL", "False", "-0", "+5", "08", "-08", "0.9", "9223372036854775807",
         "9223372036854775808", "-9223372036854775808", "{}", "{,}", "{a,}", r"{a\,b,8}",
         "{null,true,08}", "{a},b=1", r"{a\}", r"{\}}", r"a\\,b", r"a\\\,b", "a,b",
         "{a}b"]  # fmt: skip
BASES: list[Any] = [{}, {"a": {"b": 1}}, {"a": [{"b": 1}, 2, None, [3]]}, {"a": None}, {"b": "x"}]


def escaped(value: str) -> str:
    """Write a value as Argo CD does, with a backslash before commas that have none."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return re.sub(r"(?<!\\),", r"\\,", value)


def named(random: Random) -> str:
    levels = random.choices(KEYS[:2] * 4 + KEYS, k=random.randint(1, 3))
    return ".".join(
        key + "".join(f"[{random.randint(0, 3)}]" for _ in range(random.choice([0, 0, 0, 1, 1, 2])))
        for key in levels
    )


def rendered(chart: Path, bases: dict[str, Any], options: list[str]) -> dict[str, Any]:
    """Return the values that Helm gives the templates of a chart."""
    (chart / "given.json").write_text(json.dumps(bases), "utf-8")
    done = subprocess.run(
        [program("helm"), "template", "x", str(chart), "-f", str(chart / "given.json"), *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stderr, options)
    values: dict[str, Any] = json.loads(done.stdout.partition("values: ")[2])
    return values


def test_values_are_those_of_helm(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n", "utf-8")
    template = "values: {{ mustToJson .Values }}\n"
    (tmp_path / "templates" / "values.yaml").write_text(template, "utf-8")
    random, read = Random(8), 0
    for _ in range(DRAWN // AT_ONCE):
        bases, mine, options = dict[str, Any](), dict[str, Any](), list[str]()
        for each in range(AT_ONCE):
            value = random.choice(WHOLE) if random.random() < 0.4 else ""
            value = value or "".join(random.choices(PIECES, k=random.randint(0, 5)))
            name, base, as_text = named(random), random.choice(BASES), random.random() < 0.2
            steps, given = steps_of(name), parsed(value, as_text=as_text)
            if isinstance(steps, Unknown) or isinstance(given, Unknown):
                continue
            after = with_value(base, steps, given)
            if "Unknown(" in repr(after):
                continue
            bases[f"of{each}"], mine[f"of{each}"] = base, after
            option = "--set-string" if as_text else "--set"
            options += [option, f"of{each}.{name}={escaped(value)}"]
        read += len(mine)
        assert rendered(tmp_path, bases, options) == mine
    assert read > DRAWN / 2
