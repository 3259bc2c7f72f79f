"""The parsers that the tables describe, built with argparse itself and nothing of the reader."""

import argparse
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import kthena_components

TABLES = Path(kthena_components.__file__).parent / "core" / "engines" / "tables"
UNITS = {
    "vllm": {"k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
    | {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4},
    "sglang": {"k": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
    | {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4},
}


class RefusedError(Exception):
    """What stands for the end of an engine's process."""


class Parser(argparse.ArgumentParser):
    """A parser that raises where an engine's would end the process."""

    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)


@cache
def table(engine: str) -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads((TABLES / f"{engine}.json").read_text())
    return read


def releases(engine: str) -> list[str]:
    return [release["version"] for release in table(engine)["releases"]]


@cache
def rows_at(engine: str, version: str) -> list[Mapping[str, Any]]:
    """Give the options of a release."""
    order = releases(engine)
    at = order.index(version)
    return [
        row
        for row in table(engine)["options"]
        if order.index(row["since"]) <= at <= order.index(row.get("until", order[-1]))
    ]


@cache
def parser_of(engine: str, version: str) -> Parser:
    """Build the parser of a release: `vllm serve` with a model, or SGLang's launch_server."""
    parser = Parser(add_help=False)
    if engine == "vllm":
        # Required up to 0.8.2: vllm/entrypoints/cli/serve.py has nargs="?" since 0.8.3.
        needed = releases(engine).index(version) <= releases(engine).index("0.8.2")
        parser.add_argument("model_tag", nargs=None if needed else "?")
    for row in rows_at(engine, version):
        _add(parser, row, engine)
    return parser


def dest_of(row: Mapping[str, Any]) -> str:
    first: str = next((name for name in row["names"] if name.startswith("--")), row["names"][0])
    return first


def _add(parser: Parser, row: Mapping[str, Any], engine: str) -> None:
    arity, dest = row.get("arity", "1"), dest_of(row)
    if arity == "0":
        refused = row.get("type") == "refused"
        parser.add_argument(*row["names"], dest=dest, action=_Refuse if refused else "store_true")
        if row.get("off"):
            parser.add_argument(*row["off"], dest=dest, action="store_false")
        return
    parser.add_argument(
        *row["names"],
        dest=dest,
        nargs=None if arity == "1" else int(arity) if arity.isdigit() else arity,
        type=_converter(row, engine),
    )


class _Refuse(argparse.Action):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(nargs=0, **kwargs)

    def __call__(self, *_: Any) -> None:
        raise RefusedError("retired")


def _converter(row: Mapping[str, Any], engine: str) -> Callable[[str], Any]:
    kind, choices = row.get("type", "text"), row.get("choices")
    base = _BASES.get(kind.removesuffix("?"), str)

    def convert(word: str) -> Any:
        if kind.endswith("?") and word in {"", "None"}:
            if choices and "None" not in choices:
                raise ValueError(word)
            return None
        value = _sized(word, engine, kind) if kind.startswith("size") else base(word)
        if choices and str(value) not in choices:
            raise ValueError(word)
        return value

    return convert


def _true_or_false(word: str) -> bool:
    if word.lower() not in {"true", "false"}:
        raise ValueError(word)
    return word.lower() == "true"


def _object(word: str) -> dict[str, Any]:
    value = json.loads(word)
    if not isinstance(value, dict):
        raise TypeError(word)
    return value


_BASES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": _true_or_false,
    "json": json.loads,
    "object": _object,
}


def _sized(word: str, engine: str, kind: str) -> int | None:
    if kind == "size-auto" and word.lower() in {"auto", "-1"}:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-zA-Z]+)", word.strip())
    if match is None:
        return int(word)
    factor = UNITS[engine].get(match[2])
    if factor is None or ("." in match[1] and factor % 1024 == 0):
        raise ValueError(word)
    return int(float(match[1]) * factor)
