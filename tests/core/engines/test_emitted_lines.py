"""Every command line that is written has only options that its release has, as its parser has them.

The tables are read here as the files that they are, and not by the reader of the package.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core import engines
from kthena_components.core.engines import (
    Launch,
    Transfer,
    default_launcher,
    unsupported,
    write_commands,
)
from tests.support.for_each import for_each
from tests.support.strategies import law

pytestmark = pytest.mark.property

Row = dict[str, Any]
TABLES = Path(engines.__file__).parent / "tables"
STARTS = {"vllm": ("vllm", "serve"), "sglang": ("python3", "-m", "sglang.launch_server")}
SCRIPT = re.compile(r"/vllm-workspace/examples/(online|ray)_serving/multi-node-serving\.sh")
OF_THE_SCRIPT = {
    "leader": {"--ray_port", "--ray_cluster_size", "--ray_init_timeout"},
    "worker": {"--ray_port", "--ray_address", "--ray_init_timeout"},
}
"""What multi-node-serving.sh takes itself; it hands everything else to `ray start`.

Source: vllm examples/ray_serving/multi-node-serving.sh of 0.33.0, the same since 0.8.0.
"""


@cache
def table(engine: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((TABLES / f"{engine}.json").read_text())
    return content


@cache
def releases(engine: str) -> tuple[str, ...]:
    return tuple(release["version"] for release in table(engine)["releases"])


@cache
def options(engine: str, release: str) -> dict[str, Row]:
    """Give the options of a release by every spelling."""
    order = releases(engine)
    now, last = order.index(release), order[-1]
    return {
        name: row
        for row in table(engine)["options"]
        if order.index(row["since"]) <= now <= order.index(row.get("until", last))
        for name in (*row["names"], *row.get("off", ()))
    }


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)))


@st.composite
def shapes(draw: st.DrawFn) -> Row:
    """Draw what is launched, whatever the engine and its release."""
    pods = draw(st.integers(1, 4))
    return {
        "model": "org/M",
        "tensor": draw(st.sampled_from([1, 2, 4, 8])),
        "pipeline": draw(st.sampled_from([1, 2, pods])),
        "data": draw(st.sampled_from([1, 1, pods, 2 * pods])),
        "expert": draw(st.booleans()),
        "pods": pods,
        "gpus_per_pod": draw(st.sampled_from([1, 8, 32])),
        "port": 8080,
        "transfer": draw(st.none() | transfers()),
    }


def transfers() -> st.SearchStrategy[Transfer]:
    """Draw how the engine shares its KV cache."""
    return st.builds(
        Transfer,
        role=st.sampled_from(["prefill", "decode", "both"]),
        connector=st.sampled_from(["nixl", "mooncake", "lmcache"]),
        port=st.sampled_from([None, 5600, 8998]),
    )


def commands(words: Sequence[str]) -> Iterator[list[str]]:
    """Give the simple commands of a container's command, with a value for every reference."""
    filled = [re.sub(r"\$\(\([^()]*\)\)|\$\([A-Z_]+\)", "1", word) for word in words]
    line = shlex.split(filled[2]) if filled[:2] == ["sh", "-c"] else filled
    command: list[str] = []
    for word in [*line, "&&"]:
        if word == "&&":
            yield command[command[:1] == ["exec"] :]
            command = []
        else:
            command.append(word)


def check_option(row: Row, name: str, values: list[str]) -> None:
    """Hold the words behind an option against the number, type and choices that it takes."""
    assert row.get("type") != "refused", name
    assert len(values) == {"0": 0, "1": 1}[row.get("arity", "1")], (name, values)
    for value in values:
        assert row.get("type") != "int" or value.isdecimal(), (name, value)
        if name == "--kv-transfer-config":
            check_transfer(json.loads(value))
        assert value in (row.get("choices") or [value]), (name, value)


def check_transfer(config: dict[str, str]) -> None:
    """Hold vLLM's KV transfer against what KVTransferConfig of every release takes."""
    assert set(config) == {"kv_connector", "kv_role"}
    assert config["kv_role"] in {"kv_producer", "kv_consumer", "kv_both"}


def check_arguments(words: Sequence[str], known: dict[str, Row], positional: int) -> None:
    """Hold arguments against a table: so many bare words first, then options with their values."""
    assert not any(word.startswith("-") for word in words[:positional]), words
    rest = list(words[positional:])
    while rest:
        name = rest.pop(0)
        assert name in known, f"{name} of {words} is not an option"
        count = next((i for i, word in enumerate(rest) if word.startswith("--")), len(rest))
        check_option(known[name], name, rest[:count])
        del rest[:count]


def check_command(words: list[str], engine: str, release: str) -> str:
    """Hold one command against the tables; say what it starts."""
    start = STARTS[engine]
    if tuple(words[: len(start)]) == start:
        known = options(engine, release)
        check_arguments(words[len(start) :], known, positional=1 if engine == "vllm" else 0)
        return engine
    shell, script, role, *rest = words
    assert (shell, engine) == ("bash", "vllm"), words
    assert SCRIPT.fullmatch(script), words
    folder = "online" if numbers(release) < (0, 21) else "ray"
    assert f"/{folder}_serving/" in script
    own = {word.partition("=")[0] for word in rest if word.partition("=")[0] in OF_THE_SCRIPT[role]}
    handed_on = [word for word in rest if word.partition("=")[0] not in own]
    for of_ray in releases("ray"):
        check_arguments(handed_on, options("ray", of_ray), positional=0)
    return "ray"


def started(launch: Launch, release: str) -> list[set[str]]:
    """Check what is written for a launch; say what each of its pods starts."""
    written = write_commands(launch)
    pods = [written.entry, *([written.worker] if written.worker else [])]
    return [
        {check_command(command, launch.kind, release) for command in commands(words)}
        for words in pods
    ]


@pytest.mark.parametrize(
    ("engine", "launcher"), [("vllm", "ray"), ("vllm", "native"), ("sglang", "native")]
)
@given(shapes())
@law
def test_each_release_has_every_option_that_is_written_for_it(
    engine: str, launcher: str, shape: Row
) -> None:
    for release in releases(engine):
        launch = Launch(kind=engine, launcher=launcher, release=numbers(release), **shape)
        if unsupported(launch):
            continue
        entry, *workers = started(launch, release)
        by_ray = launcher == "ray" and launch.pods > 1
        assert entry == ({"ray", engine} if by_ray else {engine})
        assert workers == [{"ray"} if by_ray else {engine}] * (launch.pods > 1)


@given(shapes(), st.sampled_from(["vllm", "sglang"]))
@law
def test_an_image_without_a_release_is_taken_for_the_newest(shape: Row, engine: str) -> None:
    newest = releases(engine)[-1]
    launches = [
        Launch(kind=engine, launcher="native", release=release, **shape)
        for release in (None, numbers(newest))
    ]
    assert unsupported(launches[0]) == unsupported(launches[1])
    if not unsupported(launches[0]):
        assert write_commands(launches[0]) == write_commands(launches[1])
        started(launches[0], newest)


ONE: Row = {
    "model": "org/M",
    "tensor": 8,
    "data": 1,
    "expert": False,
    "gpus_per_pod": 8,
    "port": 80,
}


@for_each(
    ("engine", "release"), [(engine, release) for engine in STARTS for release in releases(engine)]
)
def test_whoever_joins_pods_by_default_can_do_so(engine: str, release: str) -> None:
    version = numbers(release)
    launcher = default_launcher(engine, version, 1)
    one = Launch(kind=engine, launcher=launcher, release=version, pipeline=1, pods=1, **ONE)
    two = Launch(kind=engine, launcher=launcher, release=version, pipeline=2, pods=2, **ONE)
    assert unsupported(one) == []
    first = {"vllm": (0, 8, 0), "sglang": (0, 4, 6, 2)}[engine]
    assert bool(unsupported(two)) is (version < first)


@pytest.mark.parametrize(
    ("words", "because"),
    [
        ("vllm serve M --nnodes 2", "is not an option"),
        ("vllm serve M --port", "port"),
        ("vllm serve M --port x", "port"),
        ("vllm serve M --headless 1", "headless"),
        ("vllm serve --port 1", "serve|--port"),
        ("bash /vllm-workspace/examples/ray_serving/multi-node-serving.sh worker", "online"),
        (
            "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh worker --nope",
            "is not an option",
        ),
    ],
)
def test_the_law_sees_what_is_wrong(words: str, because: str) -> None:
    with pytest.raises(AssertionError, match=because):
        check_command(words.split(), "vllm", "0.11.0")
