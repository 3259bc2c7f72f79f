"""For any spelling of a setting: we read what Pulumi passes to a program, or refuse it with a line.

Pulumi judges: hundreds of spellings that we read are written into one stack file, and
`pulumi config --json` says what each of them is.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kthena_components.reading.project import (
    Project,
    ProjectError,
    config_of,
    config_text,
    parse_mapping,
    parse_project,
)
from tests.support.engine import Stack

pytestmark = pytest.mark.programs
AT_ONCE = 400
"""Spellings in one stack file."""
MOST_RUNS = 8
PLACE = re.compile(r"f\.(?:yaml|json):\d+:\d+: ")

NUMBERS = ["8", "8.0", "08", "010", "1e1", "0x10", "0o10", "0b10", "1_000", "+8", "-8",
           "-0", "0.5", ".5", "5.", "1e-3", "1.5e-9", "1.5e20", "9007199254740993",
           "18446744073709551616", "1e400", "0b-1", "1:30", "1.2.3", "8Gi", "0x", "1e",
           "_1", "0.10", "00.5"]  # fmt: skip
WORDS = ["true", "True", "TRUE", "yes", "No", "on", "OFF", "y", "null", "Null", "~",
         ".inf", ".nan", "2026-01-01", "2026-01", "=", "a", "a#b", "é", "<<", "-a"]  # fmt: skip
PHRASES = ["", "a b", "a: ", "2026-1-1 1:2:3", "!!binary YWJj", "!!str 8", "!!int '8'", "!!float 8"]
PHRASES += ["!x 8", "! 8", "!!timestamp 2026-01-01"]
PIECES = ["a", "8", " ", "  ", "\n    ", "\n\n    ", "- ", "yes", "---"]
PIECES += [r"\n", r"\t", r"\\", r"\u2028", r"\x85", r"\r", r"\0", r"\ud83d", r"''",
           r"é", r"#", r":", r"{", r"|", r">", r"%", r"@"]  # fmt: skip
plain = st.sampled_from(NUMBERS + WORDS + PHRASES)
quoted = st.builds(
    lambda quote, pieces: f"{quote}{''.join(pieces)}{quote}",
    st.sampled_from(["'", '"']), st.lists(st.sampled_from(PIECES), max_size=6),
)  # fmt: skip
LINES = ["    a", "    b # c", "      c", "", "    d\te", "    e\t "]
block = st.builds(
    lambda style, chomp, lines: f"{style}{chomp}\n" + "".join(f"{line}\n" for line in lines),
    st.sampled_from("|>"), st.sampled_from(["", "-", "+", "2", "1-"]),
    st.lists(st.sampled_from(LINES), max_size=5),
)  # fmt: skip
soup = st.lists(st.sampled_from([*PIECES, "'", '"', "[", "]", "}", ",", "?", "!", "&a ", "*a"]),
                min_size=1, max_size=7).map("".join)  # fmt: skip


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = st.sampled_from(
        ["a", "'b'", '"c"', "1", "yes", "~", "<<", "'<<'", "? d", "!!str e", "secure"]
    )
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(keys, inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
        st.tuples(inner, inner).map(lambda pair: f"\n    - {pair[0]}\n    - {pair[1]}"),
        st.tuples(keys, inner).map(lambda pair: f"\n    {pair[0]}: {pair[1]}"),
        inner.map(lambda value: f"[&v{{}} {value}, *v{{}}]"),
    )


spellings = st.one_of(
    plain, quoted, block, soup, st.recursive(plain | quoted, _nested, max_leaves=5)
)


class Judge:
    """A stack of Pulumi whose settings are written and read."""

    def __init__(self, folder: Path, suffix: str) -> None:
        source = folder / "source"
        source.mkdir()
        text = '{"name": "p", "runtime": "python"}'
        (source / "Pulumi.yaml").write_text(text)
        self.stack = Stack.make(source, "s", folder)
        self.stack.settings = self.stack.settings.with_suffix(suffix)
        (self.stack.project / "Pulumi.yaml").rename(self.stack.project / f"Pulumi{suffix}")
        self.suffix = suffix
        self.runs = 0

    def read(self, text: str) -> dict[str, str] | None:
        """Return what Pulumi passes to a program, by key; None if it refuses the file."""
        self.runs += 1
        self.stack.settings.write_bytes(text.encode())
        run = self.stack.pulumi("config", "--json", "--stack", "s")
        if run.code != 0:
            return None
        found: dict[str, Any] = json.loads(run.text[run.text.index("{") :])
        return {key: entry["value"] for key, entry in found.items()}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(tmp_path_factory.mktemp("judge"), ".yaml")


def read(text: str, suffix: str = ".yaml") -> Mapping[str, Any] | str:
    """Read the config in a string, or return why it is refused."""
    try:
        return config_of(parse_mapping(text, f"f{suffix}"), "p", f"f{suffix}")
    except ProjectError as error:
        return str(error)


def same(ours: object, theirs: str) -> bool:
    """Return whether a value is what Pulumi passes, in the program's eyes."""
    if isinstance(ours, dict | list):
        return json.dumps(json.loads(theirs), sort_keys=True) == json.dumps(ours, sort_keys=True)
    return config_text(ours) == theirs


def drawn(seed: int) -> Iterator[tuple[str, object]]:
    """Yield spellings that we read, each as the line of a stack file, with its value."""
    found: list[str] = []

    @settings(max_examples=3 * AT_ONCE, database=None, suppress_health_check=list(HealthCheck),
              derandomize=True)  # fmt: skip
    @given(spellings)
    def collect(spelling: str) -> None:
        found.append(spelling)

    collect()
    Random(seed).shuffle(found)
    for index, spelling in enumerate(dict.fromkeys(found)):
        line = f"  k{index}: {spelling.replace('{}', str(index))}\n"
        told = read(f"config:\n{line}")
        if isinstance(told, str):
            REFUSED[bool(PLACE.match(told))] += 1
            assert PLACE.match(told), (line, told)
        elif set(told) == {f"p:k{index}"} and "\n---" not in line:
            yield line, told[f"p:k{index}"]


REFUSED: Counter[bool] = Counter()


def test_each_spelling_is_what_pulumi_passes_or_refused_with_its_line(judge: Judge) -> None:
    accepted = dict(drawn(0))
    lines = list(accepted)
    compared = 0
    for start in range(0, min(len(lines), AT_ONCE * MOST_RUNS), AT_ONCE):
        batch = lines[start : start + AT_ONCE]
        theirs = judge.read("config:\n" + "".join(batch))
        while theirs is None and batch:  # Pulumi refuses one of them: that is not a harm
            batch = _without_refused(batch, judge)
            theirs = judge.read("config:\n" + "".join(batch))
        assert theirs is not None
        for line in batch:
            key = "p:" + line.split(":", 1)[0].strip()
            assert same(accepted[line], theirs[key]), (line, accepted[line], theirs[key])
            compared += 1
    assert compared > AT_ONCE // 2
    assert REFUSED[True] > AT_ONCE // 4


def _without_refused(batch: list[str], judge: Judge) -> list[str]:
    """Drop one part of a batch that Pulumi refuses, by halves."""
    part = batch
    while len(part) > 1:
        half = part[: len(part) // 2]
        part = half if judge.read("config:\n" + "".join(half)) is None else part[len(half) :]
    return [line for line in batch if line not in part]


MERGED = [
    ("'<<': {config: {kubernetes:kubeconfig: b}}\n", "kubernetes:kubeconfig", "b"),
    ('config:\n  servings: [{a: b, "<<": {c: d}}]\n', "p:servings", '[{"a":"b","c":"d"}]'),
]


@pytest.mark.parametrize(("text", "key", "value"), MERGED)
def test_a_merge_key_in_quotes_is_refused_because_pulumi_merges_it(
    text: str, key: str, value: str, judge: Judge
) -> None:
    theirs, ours = judge.read(text), read(text)
    assert theirs is not None
    assert theirs[key] == value
    assert isinstance(ours, str)
    assert "has a merge key (<<)" in ours


WHOLE = [
    "config:\r\n  a: |\r\n    b\r\n    c\r\n  d: 1\r\n",
    "\ufeffconfig: {a: b}\n",
    "--- # c\nconfig:\n  a: b\n...\n",
    "x: &x {b: 1}\nconfig:\n  a: *x\n  p:config:c: d\n  q:e: f\n  a.b: 1\n  :g: h\n",
    "config:\n  a:\n  b: ~\n  c: ''\n",
    "config:\n  a: {secure: {b: c}}\n  b: [[], {}]\n  c: {}\n",
    "? config\n: ? a\n  : b\n",
    "{config: {a: b, 'c': d}}",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_whole_file_is_what_pulumi_reads(text: str, judge: Judge) -> None:
    ours, theirs = read(text), judge.read(text)
    assert not isinstance(ours, str)
    assert theirs is not None
    assert {key: config_text(value) for key, value in ours.items() if not _deep(value)} == {
        key: value for key, value in theirs.items() if not _deep(ours[key])
    }
    assert set(ours) == set(theirs)
    assert all(same(ours[key], theirs[key]) for key in ours)


def _deep(value: object) -> bool:
    return isinstance(value, dict | list)


JSON_VALUES = [r"8", r"0.5", r"-3", r"1.5e-9", r"0.00001", r"9007199254740992",
               r"true", r"{}", r'""', r'"8.0"', r'"<>&"', r'"\ud83d\ude00"',
               r'"\u2028"', r'"\na"', r'[1,0.5,{"a":null}]', r'{"secure":1}']  # fmt: skip


def test_json_is_what_pulumi_passes(tmp_path: Path) -> None:
    judge = Judge(tmp_path, ".json")
    entries = ", ".join(f'"k{i}": {value}' for i, value in enumerate(JSON_VALUES))
    text = f'{{"config": {{{entries}}}}}'
    ours, theirs = read(text, ".json"), judge.read(text)
    assert not isinstance(ours, str)
    assert theirs is not None
    assert len(ours) == len(theirs) == len(JSON_VALUES)
    for key in ours:
        assert same(ours[key], theirs[key]), (key, ours[key], theirs[key])


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ("a: 8", "8"), ("a: {default: 8}", "8"), ("a: {default: [1]}", "[1]"), ("a: b", "b"),
        ("q:a: {value: b}", "b"), ("a: {default: 0.5}", "0.5"), ("p:config:a: b", "b"),
    ],
)  # fmt: skip
def test_a_default_of_the_project_is_what_pulumi_passes(
    config: str, value: str, judge: Judge
) -> None:
    file = judge.stack.project / "Pulumi.yaml"
    before = file.read_text()
    text = f"name: p\nruntime: python\nconfig: {{{config}}}\n"
    project: Project = parse_project(parse_mapping(text, "Pulumi.yaml"), "Pulumi.yaml")
    file.write_text(text)
    try:
        theirs = judge.read("config: {}\n")
    finally:
        file.write_text(before)
    assert theirs is not None
    assert {key: json.loads(config_text(each)) if _deep(each) else config_text(each)
            for key, each in project.defaults.items()} == {
        key: json.loads(each) if each.startswith("[") else each for key, each in theirs.items()
    }  # fmt: skip
    assert list(theirs.values()) == [value]


@pytest.mark.parametrize(
    "key", ['"[\\"kubeconfig\\"]"', "a.b", "'a[0]'", "'kubernetes:[\"kubeconfig\"]'"]
)
def test_a_default_whose_key_is_a_path_is_refused(key: str, judge: Judge) -> None:
    file = judge.stack.project / "Pulumi.yaml"
    before = file.read_text()
    text = f"name: p\nruntime: python\nconfig: {{{key}: b}}\n"
    file.write_text(text)
    try:
        theirs = judge.read("config: {}\n")
    finally:
        file.write_text(before)
    assert theirs is not None
    assert not any("[" in name or "." in name for name in theirs), "Pulumi follows the path"
    with pytest.raises(ProjectError, match="which Pulumi reads as a path"):
        parse_project(parse_mapping(text, "Pulumi.yaml"), "Pulumi.yaml")
