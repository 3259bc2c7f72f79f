"""The table of the variables that the releases of an engine mention."""

import json
from pathlib import Path
from typing import Any

from toolchain.engine_flags.__main__ import TABLES
from toolchain.engine_flags.isolated import run
from toolchain.engine_flags.libraries import TABLE as LIBRARIES
from toolchain.engine_flags.libraries import variables_in
from toolchain.engine_flags.variables import (
    PREFIXES,
    TABLE,
    Takes,
    by_release,
    mentioned,
    values_by_release,
    write,
)

HELD = {
    "vllm": {
        "0.6.0": ["VLLM_A", "VLLM_B"],
        "0.6.1": ["VLLM_A"],
        "0.10.0": ["VLLM_A", "VLLM_B"],
        "0.10.1": ["VLLM_B"],
    }
}


def test_a_written_table_is_read_again() -> None:
    table = json.loads(write(HELD))
    assert table["vllm"]["releases"] == ["0.6.0", "0.6.1", "0.10.0", "0.10.1"]
    assert table["vllm"]["names"] == {"VLLM_A": [[0, 2]], "VLLM_B": [[0, 0], [2, 3]]}
    assert by_release(table["vllm"]) == HELD["vllm"]


def test_names_are_those_of_the_engine(tmp_path: Path) -> None:
    (tmp_path / "envs.py").write_text(
        'a = os.getenv("SGL_A"), "SGLANG_B_2", MY_SGLANG_C, "SGLANG_"'
    )
    assert mentioned(tmp_path, PREFIXES["sglang"]) == ["SGLANG_B_2", "SGL_A"]


def test_the_table_has_the_releases_of_the_options() -> None:
    table = json.loads(TABLE.read_text())
    for engine in PREFIXES:
        options = json.loads((TABLES / f"{engine}.json").read_text())
        assert table[engine]["releases"] == [each["version"] for each in options["releases"]]


SOURCES = """
NCCL_PARAM(IbTimeout, "IB_TIMEOUT", 20);
NCCL_PARAM_CACHED(A, "B_C", 1);
const char* name = ncclGetEnv("NCCL_SOCKET_IFNAME");
if (ncclResult == NCCL_TREE) WARN("NCCL_ and more");
"""


def test_names_of_nccl_are_those_of_its_macros_and_texts() -> None:
    assert variables_in(SOURCES) == ["NCCL_B_C", "NCCL_IB_TIMEOUT", "NCCL_SOCKET_IFNAME"]


def test_the_table_of_libraries_has_names_that_their_pages_list() -> None:
    table = json.loads(LIBRARIES.read_text())
    assert {"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_P2P_LEVEL"} <= set(table["nccl"]["names"])
    assert {"RAY_ADDRESS", "RAY_memory_usage_threshold"} <= set(table["ray"]["names"])


LEVELS = ["CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "NOTSET", "WARN", "WARNING"]
SOURCE_OF_ENVS = """
import os
environment_variables = {
    "VLLM_WHOLE": lambda: int(os.environ["VLLM_WHOLE"]),
    "VLLM_PART": lambda: float(os.environ["VLLM_PART"]),
    "VLLM_TEXT": lambda: os.environ["VLLM_TEXT"],
    "VLLM_WORD": lambda: choose(os.environ["VLLM_WORD"]),
    "OTHER": lambda: int(os.environ["OTHER"]),
    "VLLM_LOGGING_LEVEL": lambda: os.environ["VLLM_LOGGING_LEVEL"].upper(),
}
def choose(word):
    if word not in ("fork", "spawn"):
        raise ValueError(f"Invalid value '{word}'. Valid options: ['fork', 'spawn'].")
"""


def test_what_a_variable_takes_is_tried(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "envs.py").write_text(SOURCE_OF_ENVS)
    assert run("toolchain.engine_flags.vllm_values", tmp_path, "-O") == {
        "VLLM_WHOLE": {"takes": "int"},
        "VLLM_PART": {"takes": "float"},
        "VLLM_WORD": {"takes": ["fork", "spawn"]},
        "VLLM_LOGGING_LEVEL": {"takes": LEVELS, "folds": True},
    }


def test_what_variables_take_is_written_and_read_again() -> None:
    whole: dict[str, Any] = {"takes": "int"}
    words: dict[str, Any] = {"takes": ["a", "b"], "folds": True}
    values: dict[str, Takes] = {
        "0.6.0": {"VLLM_A": whole},
        "0.6.1": {},
        "0.10.0": {"VLLM_A": words},
        "0.10.1": {},
    }
    table = json.loads(write(HELD, {"vllm": values}))
    assert table["vllm"]["values"]["VLLM_A"] == [
        {"releases": [0, 0], **whole},
        {"releases": [2, 2], **words},
    ]
    assert values_by_release(table["vllm"]) == values
