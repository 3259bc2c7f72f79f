"""The tables of options: written from releases, read back, and made from what is published."""

import argparse
import io
import json
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import pydantic.dataclasses
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kthena_components
from toolchain.engine_flags import (
    click_programs,
    isolated,
    sglang,
    tables,
    verdicts,
    vllm_keys,
    vllm_parser,
)
from toolchain.engine_flags.__main__ import of_options
from toolchain.engine_flags.flags import Flag
from toolchain.engine_flags.releases import Engine, fetch

TABLES = Path(kthena_components.__file__).parent / "core" / "engines" / "tables"
FLAGS = st.builds(
    Flag,
    names=st.sampled_from([("--a",), ("--b", "-b"), ("--c",)]),
    arity=st.sampled_from(["0", "1", "?", "+"]),
    type=st.sampled_from(["text", "int"]),
    choices=st.sampled_from([None, ("x", "y")]),
    default=st.sampled_from([None, 0, False, "x"]),
    off=st.sampled_from([(), ("--no-a",)]),
)


def source(version: int) -> tables.Source:
    return tables.Source(version=f"0.{version}.0", file=f"e-0.{version}.tar.gz", sha256="0" * 64)


@given(st.lists(st.lists(FLAGS, unique_by=lambda flag: flag.names[0]), min_size=1, max_size=5))
def test_a_table_gives_back_what_each_release_had(releases: list[list[Flag]]) -> None:
    known = [(source(number), flags) for number, flags in enumerate(releases)]
    read = tables.releases_of(json.loads(tables.write("e", "r", known)))

    assert [release for release, _ in read] == [release for release, _ in known]
    for (_, found), (_, expected) in zip(read, known, strict=True):
        # JSON and Python have one 0 for 0 and False.
        assert set(map(repr, found)) == set(map(repr, expected))


def test_an_option_that_comes_back_has_two_rows() -> None:
    flag = Flag(names=("--a",), arity="1", type="text")
    rows = tables.merge([(source(0), [flag]), (source(1), []), (source(2), [flag])])

    assert [(row["since"], row.get("until")) for row in rows] == [
        ("0.0.0", "0.0.0"),
        ("0.2.0", None),
    ]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "ray"])
def test_a_table_is_written_as_it_is_read(engine: str) -> None:
    text = (TABLES / f"{engine}.json").read_text()
    table = json.loads(text)

    keys = tables.keys_of(table)
    written = tables.write(table["engine"], table["reader"], tables.releases_of(table), keys)
    assert sorted(written.splitlines()) == sorted(text.splitlines())


def test_releases_with_the_same_keys_are_a_row_unless_one_ignores_others() -> None:
    releases: list[tables.Release] = [(source(number), ()) for number in range(4)]
    own: dict[str, Any] = {"keys": ["a"]}
    found = {
        "0.0.0": {"--c": {**own, "ignores": True}},
        "0.1.0": {"--c": own},
        "0.2.0": {"--c": own},
    }
    text = tables.write("e", "r", releases, found)
    table = json.loads(text)
    assert [(row["since"], row["until"]) for row in table["keys"]] == [
        ("0.0.0", "0.0.0"),
        ("0.1.0", "0.2.0"),
    ]
    assert tables.keys_of(table) == {**found, "0.3.0": {}}


def test_words_of_releases_that_were_read_are_a_row_unless_they_differ() -> None:
    releases: list[tables.Release] = [(source(number), ()) for number in range(5)]
    own: dict[str, Any] = {"keys": ["a"]}
    found = {
        "0.0.0": {"--c": {**own, "words": {"a": ["x"]}}},
        "0.1.0": {"--c": own},
        "0.2.0": {"--c": {**own, "words": {"a": ["x"]}}},
        "0.3.0": {"--c": own},
        "0.4.0": {"--c": {**own, "words": {"a": ["y"]}}},
    }
    table = json.loads(tables.write("e", "r", releases, found))
    assert [(row["since"], row["until"], row["words"]) for row in table["words"]] == [
        ("0.0.0", "0.2.0", ["x"]),
        ("0.4.0", "0.4.0", ["y"]),
    ]
    read = tables.keys_of(table)
    assert read["0.1.0"]["--c"]["words"] == {"a": ["x"]}
    assert "words" not in read["0.3.0"]["--c"]
    assert json.loads(tables.write("e", "r", releases, read)) == table


def test_words_of_an_option_itself_have_no_row_of_keys() -> None:
    releases: list[tables.Release] = [(source(0), ())]
    found = {"0.0.0": {"--c": {"words": {"": ["x"]}}}}
    table = json.loads(tables.write("e", "r", releases, found))
    assert "keys" not in table
    assert tables.keys_of(table) == found


def test_words_count_only_where_a_class_checks_them() -> None:
    typed = {"__annotations__": {"a": Literal["x", "y"] | None}, "a": None}
    assert vllm_keys.words_of(dataclass(type("Plain", (), dict(typed))), "a") == []
    checked = pydantic.dataclasses.dataclass(type("Checked", (), dict(typed)))
    assert vllm_keys.words_of(checked, "a") == ["x", "y"]


def test_types_are_what_a_class_refuses() -> None:
    typed = {
        "__annotations__": {
            "some": int | None,
            "share": float,
            "on": bool,
            "name": str,
            "kind": Literal["x", "y"],
            "listed": list[str],
            "inner": dict[str, int],
            "any": object,
            "either": int | str,
            "of_plugin": str,
        }
    }
    bare = {**typed, **dict.fromkeys(typed["__annotations__"])}
    assert vllm_keys.types_of(dataclass(type("Plain", (), dict(bare)))) == {}
    checked = pydantic.dataclasses.dataclass(type("Checked", (), dict(bare)))
    assert vllm_keys.types_of(checked) == {
        "bool": ["on"],
        "float": ["share"],
        "int": ["some"],
        "list": ["listed"],
        "map": ["inner"],
        "text": ["kind", "name"],
    }


def test_registered_names_are_those_of_the_first_registry_with_some() -> None:
    def absent() -> list[str]:
        raise ImportError

    assert vllm_keys.registered([absent, list, lambda: ["b", "a"], lambda: ["c"]]) == ["a", "b"]
    assert vllm_keys.registered([absent, list]) == []


def test_words_of_an_option_that_the_parser_checks_are_left_out() -> None:
    inside: dict[str, dict[str, Any]] = {name: {"words": {"": ["x"]}} for name in ("--a", "--b")}
    flags = [
        Flag(names=("--a",), arity="1", type="text", choices=("x",)),
        Flag(names=("--b",), arity="1", type="text"),
    ]
    assert of_options(inside, flags) == {"--b": inside["--b"]}


def test_keys_are_those_of_options_that_the_release_has() -> None:
    inside = {"--a.b": {"keys": ["x"]}, "--c": {"keys": ["y"]}}
    assert of_options(inside, [Flag(names=("--a", "-a"), arity="1", type="json")]) == {
        "--a.b": {"keys": ["x"]}
    }


def test_a_package_that_fails_with_stubs_gets_one_even_if_it_is_installed() -> None:
    code = "from toolchain.engine_flags import stubs; stubs.install('vllm'); import pandas; "
    code += "assert stubs.is_stubbed(pandas.DataFrame)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=TABLES.parents[3])


@pytest.mark.parametrize("engine", ["vllm", "sglang", "ray"])
def test_every_release_names_its_distribution_and_its_hash(engine: str) -> None:
    releases = json.loads((TABLES / f"{engine}.json").read_text())["releases"]

    assert all(len(release["sha256"]) == 64 for release in releases)
    assert all(release["version"] in release["file"] for release in releases)


def test_a_distribution_is_unpacked_and_nothing_outside_its_package(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name in ("e-1/e/a.py", "e-1/e/../../out.py", "e-1/setup.py", "e-1/e/b.so"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())

    class Index:
        def download_package(self, _: Any, path: Path, *, verify: bool) -> None:
            assert verify
            path.write_bytes(archive.getvalue())

    package: Any = SimpleNamespace(filename="e-1.tar.gz", version="1", digests={"sha256": "0" * 64})
    index: Any = Index()
    found = fetch(Engine(name="e", package="e", first="0"), package, index, tmp_path)

    assert found == tables.Source(version="1", file="e-1.tar.gz", sha256="0" * 64)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")] == ["e/a.py"]


def test_a_foreign_parser_sees_no_variable_and_its_failure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    parser = tmp_path / "sglang" / "srt" / "server_args.py"
    parser.parent.mkdir(parents=True)
    parser.write_text("import os\nraise ValueError(sorted(os.environ.items()))\n")
    with pytest.raises(ValueError, match="did not run: ") as raised:
        isolated.run("toolchain.engine_flags.sglang_parser", tmp_path, "-S")

    assert "LC_ALL" in str(raised.value)
    assert "HF_TOKEN" not in str(raised.value)


def test_the_options_of_a_click_command_are_read_from_its_decorators(tmp_path: Path) -> None:
    for name in ("ray/_private/ray_constants.py", "ray/autoscaler/_private/cli_logger.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("PORT = 6379\nCLICK_LOGGING_OPTIONS = []\n")
    script = tmp_path / "ray/scripts/scripts.py"
    script.parent.mkdir(parents=True)
    script.write_text(
        "@cli.command()\n@click.option('--port', type=int, default=ray_constants.PORT)\n"
        "@click.option('--head', is_flag=True)\ndef start(port, head): ...\n"
    )

    port, head = click_programs.read(tmp_path)
    assert (port.names, port.type, port.default) == (("--port",), "int", 6379)
    assert (head.names, head.arity) == (("--head",), "0")


def test_json_is_read_without_the_package_that_an_engine_reads_it_with(tmp_path: Path) -> None:
    parser = tmp_path / "sglang" / "srt" / "server_args.py"
    parser.parent.mkdir(parents=True)
    parser.write_text(
        "import orjson\nclass ServerArgs:\n  def add_cli_args(parser):\n"
        "    parser.add_argument('--model-path')\n"
        "    parser.add_argument('--labels', type=orjson.loads)\n"
    )
    root, told = tmp_path, ("sglang", "400", "seed")
    lines = isolated.run("toolchain.engine_flags.lines", root, "-S", arguments=told)

    taken = {
        words[3]: said is not None
        for words, said in lines
        if words[2:3] == ["--labels"] and len(words) == 4
    }
    assert not taken["abc"]
    assert taken["4"]


def only_objects(word: str) -> dict[str, Any]:
    value = json.loads(word)
    if not isinstance(value, dict):
        raise TypeError(word)
    return value


def nullable(word: str) -> str | None:
    return None if word == "None" else word


@pytest.mark.parametrize(
    ("converter", "none", "kept"),
    [(nullable, None, True), (nullable, "None", False), (str, None, False), (str, "None", True)],
)
def test_a_choice_of_none_counts_where_the_converter_gives_it(
    converter: Any, none: str | None, *, kept: bool
) -> None:
    choices = [none, "mp"]
    action = argparse.ArgumentParser().add_argument("--a", type=converter, choices=choices)
    described = vllm_parser.describe(action, ["--a"])
    assert ("None" in described["choices"]) is kept
    assert described["type"] == ("text?" if converter is nullable else "text")


@pytest.mark.parametrize(("converter", "kind"), [(json.loads, "json"), (only_objects, "object")])
def test_the_type_of_an_option_is_what_its_converter_takes(converter: Any, kind: str) -> None:
    action = argparse.ArgumentParser().add_argument("--a", type=converter)
    assert vllm_parser.describe(action, ["--a"])["type"] == kind


@dataclass
class CacheConfig:
    """Like vLLM's: the parser has no choices, and this rejects words."""

    cache_dtype: Literal["auto", "fp8", "not here"] | str = "auto"  # noqa: PYI051 - as in vLLM

    def __post_init__(self) -> None:
        if self.cache_dtype not in {"auto", "fp8"}:
            raise ValueError(self.cache_dtype)


@dataclass
class OpenConfig:
    """A plugin may accept any word."""

    cache_dtype: Literal["auto", "fp8"] | str = "auto"  # noqa: PYI051 - as in vLLM


@dataclass
class AsksForGpu(CacheConfig):
    """Cannot be built here."""

    def __post_init__(self) -> None:
        raise RuntimeError


@pytest.mark.parametrize(
    ("config", "choices"),
    [(CacheConfig, ["auto", "fp8"]), (OpenConfig, None), (AsksForGpu, None), (None, None)],
)
def test_choices_that_the_configuration_checks_are_tried_there(
    config: Any, choices: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    module = ModuleType("vllm.config")
    vars(module).update({} if config is None else {"CacheConfig": config})
    monkeypatch.setitem(sys.modules, "vllm.config", module)
    action = argparse.ArgumentParser().add_argument("--kv-cache-dtype")
    assert vllm_parser.describe(action, ["--kv-cache-dtype"])["choices"] == choices


def test_verdicts_are_recorded_where_their_test_reads_them() -> None:
    assert verdicts.RECORD.is_file()


EVENTS = """
class KVEventsConfig(BaseModel):
    publisher: str = "null"
    endpoint: str = "tcp://*:5557"

    def from_cli(cls, value): ...

class EventPublisherFactory:
    _registry: dict[str, object] = {"null": A, "zmq": B}
"""


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        (("", ""), {"ignores": True}),
        (('= "null"', '= "null"\n    model_config = {"extra": "forbid"}'), {}),
        (("(BaseModel)", ""), None),
        (("KVEventsConfig", "Moved"), None),
    ],
)
def test_keys_of_kv_events_of_sglang_are_read(
    tmp_path: Path, changes: tuple[str, str], read: dict[str, Any] | None
) -> None:
    file = tmp_path / "sglang/srt/disaggregation/kv_events.py"
    assert sglang.read_keys(tmp_path) == {}
    file.parent.mkdir(parents=True)
    old, new = changes
    file.write_text(EVENTS.replace(old, new) if old else EVENTS)
    found = sglang.read_keys(tmp_path)
    if read is None:
        assert found == {}
        return
    own = found["--kv-events-config"]
    assert own["words"] == {"publisher": ["null", "zmq"]}
    assert own["keys"] == ["endpoint", "publisher"]
    assert own.get("ignores") is read.get("ignores")
