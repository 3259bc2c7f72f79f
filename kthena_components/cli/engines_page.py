"""Writes docs/engines.md from the tables of options: `make engine-tables` runs it."""

import re
import sys
from collections.abc import Iterator

from kthena_components.core.engines.table import Table, load
from kthena_components.core.rules.documentation import RuleDoc
from kthena_components.judge.catalogue import all_rules

_HEAD = """# Engines and their releases

A command line is held against the options of the release that runs. They are not read by hand: each
release's own parser lists them, and `kthena_components/core/engines/tables/` holds what it listed,
with the name and the hash of the distribution it came from.

- The tag of the project's own image, `vllm/vllm-openai:v0.11.1` or `lmsysorg/sglang:v0.5.10`, says
  which release runs, from whatever registry it is pulled.
- Any other image, and a tag that states no release (`latest`, `nightly`), is held against the
  newest release below. What depends on the release is then advice, and the finding says so.
- A release that is newer than the tables is held against the newest one that they have, and the
  finding says so.
- A program that takes an engine's options beside its own (KAITO's, Dynamo's, KServe's
  huggingfaceserver) is read by the newest release, and is not told which options it lacks.

<!-- Written by `make engine-tables`. Change kthena_components/cli/engines_page.py instead. -->
"""
_TITLES = {"vllm": "vLLM", "sglang": "SGLang", "ray": "Ray: `ray start`"}
_TAIL = """## Add a release

```
make engine-tables
```

It asks the Python Package Index which releases there are, downloads those that a table lacks, runs
their parsers in a process of its own without network credentials, and writes the tables and this
page. Nothing else changes: read the difference, run `make test`, and commit. `ARGS="--all vllm"`
reads every release of an engine again. TensorRT-LLM publishes no source there, so its options are
kept by hand in `core/engines/trtllm.py`.
"""
_BY_HAND = """## Engines without tables

Their options are maintained by hand. Findings about unknown options are advisory.

| engine | release | file |
|---|---|---|
| TensorRT-LLM | 2026 | `core/engines/trtllm.py` |
| Text Generation Inference | 3.3.7 | `core/engines/tgi.py` |
| LMDeploy (`api_server`) | 0.16.0 | `core/engines/lmdeploy.py` |
"""
_VERSION = re.compile(r"\b0\.[0-9]+")


def render() -> str:
    """Write the page."""
    engines = "\n".join(_engine(name) for name in _TITLES)
    return f"{_HEAD}\n{engines}\n{_rules()}\n{_BY_HAND}\n{_TAIL}"


def _engine(name: str) -> str:
    table = load(name)
    newest, oldest = table.texts[-1], table.texts[0]
    known = f"{len(table.texts)} releases, {oldest} to {newest}. {newest} has"
    known += f" {len(table.at(table.versions[-1]))} options. Read from {table.reader}."
    head = ["| release | options | new | gone |", "|---|---|---|---|"]
    return "\n".join([f"## {_TITLES[name]}", "", known, "", *head, *_changes(table), ""])


def _changes(table: Table) -> Iterator[str]:
    """Give a line for each release that has other options than the one before."""
    before: frozenset[str] = frozenset()
    for text, version in zip(table.texts, table.versions, strict=True):
        rows = table.at(version)
        names = frozenset(row.name for row in rows)
        spelled = frozenset(name for row in rows for name in row.names)
        gone = sorted(before - spelled)
        if names != before:
            new = len(names - before) if before else 0
            shown = ", ".join(f"`{name}`" for name in gone)
            yield f"| {text} | {len(rows)} | {new or ''} | {shown} |"
        before = names


def _rules() -> str:
    rows = [
        f"| [{rule.name}](policies.md#{rule.name}) | {rule.summary} |" for rule in _by_release()
    ]
    head = "Their pages say from which release to which they hold."
    return "\n".join(
        [
            "## Rules that go by the release",
            "",
            head,
            "",
            "| rule | what holds |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _by_release() -> Iterator[RuleDoc]:
    for rule in all_rules():
        engines = any(source.startswith(("vllm", "sglang")) for source in rule.sources)
        text = " ".join([rule.body, rule.weighs, *(case.text for case in rule.examples)])
        if engines and _VERSION.search(text):
            yield rule


if __name__ == "__main__":
    sys.stdout.write(render())
