"""Config files and scripts that come from ConfigMaps, and what a command line says with them."""

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.engines import CommandFacts, Mount, read_command
from kthena_components.core.engines.files import Absent, read_file, read_yaml
from kthena_components.core.values.unknown import Unknown

VLLM = """
model: meta-llama/Llama-3.3-70B-Instruct
tensor-parallel-size: 8
pipeline_parallel_size: 2
enable-expert-parallel: true
max-model-len: 8k
served-model-name: [a, b]
speculative-config: {num_speculative_tokens: 3, model: draft}
"""
SGLANG = "model-path: M\ntp-size: 16\nnnodes: 2\nenable-dp-attention: false\n"
TRTLLM = """
tensor_parallel_size: 8
pipeline_parallel_size: 2
kv_cache_config: {free_gpu_memory_fraction: 0.8}
cuda_graph_config: {max_batch_size: 8}
"""
KAITO = "vllm:\n  tensor-parallel-size: 4\n  max-model-len: 4096\nmax_probe_steps: 6\n"
AT = "/etc/engine/config.yaml"
VECTORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vLLM, all from the file": (
        f"vllm serve --config {AT}",
        VLLM,
        {
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "tensor": 8,
            "pipeline": 2,
            "data": 1,
            "expert": True,
            "max_model_len": 8000,
            "speculative_tokens": 3,
            "problems": (),
        },
    ),
    "vLLM, the command line wins": (
        f"vllm serve M -tp 4 --config {AT} --no-enable-expert-parallel",
        VLLM,
        {"model": "M", "tensor": 4, "pipeline": 2, "expert": False, "problems": ()},
    ),
    "vLLM, a switch turned off": (
        f"vllm serve M --config {AT}",
        "enable-expert-parallel: false",
        {"expert": False, "tensor": 1, "problems": ()},
    ),
    "the module of the API server": (
        f"python3 -m vllm.entrypoints.openai.api_server --config {AT}",
        VLLM,
        {"model": "meta-llama/Llama-3.3-70B-Instruct", "tensor": 8},
    ),
    "an empty file": (f"vllm serve M --config {AT}", "# nothing yet\n", {"tensor": 1, "data": 1}),
    "SGLang, the command line wins": (
        f"python3 -m sglang.launch_server --config {AT} --nnodes 4",
        SGLANG,
        {"model": "M", "tensor": 16, "nnodes": 4, "attention_data": 1, "problems": ()},
    ),
    "TensorRT-LLM, the file wins": (
        f"trtllm-serve M --tp_size 4 --max_seq_len 4096 --config {AT}",
        TRTLLM,
        {
            "model": "M",
            "tensor": 8,
            "pipeline": 2,
            "max_model_len": 4096,
            "memory_fraction": 0.8,
            "problems": (),
        },
    ),
    "TensorRT-LLM, the older flag": (
        f"trtllm-serve M --extra_llm_api_options {AT}",
        TRTLLM,
        {"tensor": 8, "pipeline": 2},
    ),
    "Dynamo's TensorRT-LLM": (
        f"python3 -m dynamo.trtllm --model-path M --extra-engine-args {AT}",
        TRTLLM,
        {"tensor": 8, "pipeline": 2, "model": "M"},
    ),
    "KAITO, the file wins": (
        f"python3 /workspace/vllm/inference_api.py -tp 8 -pp 2 --kaito-config-file {AT}",
        KAITO,
        {"tensor": 4, "pipeline": 2, "max_model_len": 4096},
    ),
}


def mount(text: str, path: str = AT) -> Mount:
    folder, _, name = path.rpartition("/")
    return Mount(folder, ((name, text),), None, "ConfigMap 'engine'")


def read(command: str, *mounts: Mount, **env: str) -> CommandFacts:
    facts = read_command(command.split(), env, files=mounts)
    assert facts is not None
    return facts


@pytest.mark.parametrize(("command", "text", "expected"), VECTORS.values(), ids=VECTORS)
def test_a_config_file_says_what_it_says(command: str, text: str, expected: dict[str, Any]) -> None:
    facts = read(command, mount(text))

    assert {name: getattr(facts, name) for name in expected} == expected


def test_what_a_file_states_has_its_place() -> None:
    where = read(f"vllm serve M --config {AT} -pp 1", mount(VLLM)).where

    assert where["tensor"] == f"--tensor-parallel-size 8 in {AT}"
    assert where["pipeline"] == "-pp 1"


def test_a_key_that_the_engine_refuses_is_a_problem_of_the_file() -> None:
    (problem,) = read(f"vllm serve M --config {AT}", mount("tp: 8")).problems

    assert problem.text == f"in {AT}, vLLM has no flag '--tp' and does not start with it"
    assert (problem.hard, problem.remedy) == (True, "write --tensor-parallel-size")


def test_a_variable_in_a_file_is_only_text() -> None:
    facts = read(f"vllm serve M --config {AT}", mount("tensor-parallel-size: $(TP)"), TP="8")

    assert isinstance(facts.tensor, Unknown)


@pytest.mark.parametrize(
    ("held", "because"),
    [
        (mount("[1, 2]"), "cannot be read: it contains no map"),
        (mount("a: ["), "cannot be read: it is not valid YAML"),
        (mount("a: &x 1\nb: *x"), "cannot be read: it has aliases, which are not resolved here"),
        (mount("[" * 50 + "]" * 50), "cannot be read: it is nested more deeply than 20 levels"),
        (mount("a: 1\n" * 300_000), "cannot be read: it has more than 1048576 characters"),
        (Mount("/etc/engine", gap=Unknown("W")), "is not available: W"),
        (
            mount("a: 1", "/etc/engine/other.yaml"),
            f"is not available: ConfigMap 'engine' has no key that becomes {AT}",
        ),
        (mount("a: 1", "/etc/other/config.yaml"), "is not available"),
    ],
    ids=["list", "broken", "alias", "deep", "long", "gap", "absent", "elsewhere"],
)
def test_a_file_that_cannot_be_read_leaves_open_what_is_not_stated(
    held: Mount, because: str
) -> None:
    facts = read(f"vllm serve M --config {AT} -tp 8", held)

    assert (facts.tensor, facts.pipeline) == (8, Unknown(f"the file of --config {AT} {because}"))


def test_a_file_that_is_surely_not_there_is_told() -> None:
    facts = read(f"vllm serve M --config {AT}", mount("a: 1", "/etc/engine/other.yaml"))

    assert facts.missing_files == (f"ConfigMap 'engine' has no key that becomes {AT}",)
    assert read(f"vllm serve M --config {AT}", mount("a: 1")).missing_files == ()


SCRIPT = '#!/bin/bash\nset -e\nTP=8\nexec vllm serve M -tp "$TP" -pp $1\n'


@pytest.mark.parametrize(
    ("command", "pipeline"),
    [
        ("bash /scripts/start.sh 1", 1),
        ("bash -e /scripts/start.sh 2", 2),
        ("/scripts/start.sh 2", 2),
        ("exec /scripts/start.sh 2", 2),
        ("tini -- bash /scripts/start.sh 2", 2),
    ],
)
def test_a_mounted_script_is_read(command: str, pipeline: int) -> None:
    facts = read(command, mount(SCRIPT, "/scripts/start.sh"))

    assert (facts.tensor, facts.pipeline) == (8, pipeline)


def test_a_script_may_take_in_another_one() -> None:
    start = mount(". /scripts/env.sh\nvllm serve M -tp $TP", "/scripts/start.sh")
    both = Mount("/scripts", (*start.files, ("env.sh", "export TP=8")), None, "ConfigMap 's'")

    assert read("sh /scripts/start.sh", both).tensor == 8


def test_a_script_that_takes_in_itself_comes_to_an_end() -> None:
    text = "vllm serve M -tp 8\n" + ". /s/a.sh\n" * 1000

    read_so_far = read("sh /s/a.sh", mount(text, "/s/a.sh")).tensor
    assert read_so_far == Unknown("its script sources more than 16 files")


def test_what_is_no_script_of_a_shell_is_not_read() -> None:
    python = mount("#!/usr/bin/env python3\nvllm serve M -tp 8", "/scripts/start.py")

    assert read_command(["/scripts/start.py"], {}, files=(python,)) is None


def test_scripts_that_start_themselves_come_to_an_end() -> None:
    text = "vllm serve M -tp 8\n" + "sh /s/a.sh\n" * 1000
    began = time.process_time()  # work, which a busy machine does not make more

    read_so_far = read("sh /s/a.sh", mount(text, "/s/a.sh")).tensor
    assert isinstance(read_so_far, Unknown)
    assert time.process_time() - began < 2


def test_a_file_of_more_values_than_are_read_hides_what_the_command_line_leaves_open() -> None:
    text = "".join(f"x{n}: 1\n" for n in range(6000)) + "tensor-parallel-size: 8\n"
    facts = read(f"vllm serve M -pp 2 --config {AT}", mount(text))
    assert facts.pipeline == 2
    assert facts.tensor == Unknown(
        f"the file of --config {AT} cannot be read: it has more than 10000 keys and values"
    )


def test_what_stands_behind_a_thousand_options_of_a_file_is_read() -> None:
    text = "".join(f"x{n}: 1\n" for n in range(1500)) + "tensor-parallel-size: 8\n"
    assert read(f"vllm serve M --config {AT}", mount(text)).tensor == 8


def test_files_that_are_taken_in_are_read_up_to_a_limit_that_is_told() -> None:
    def facts(count: int) -> CommandFacts:
        names = [f"s{n}.sh" for n in range(count)]
        files = tuple((name, "export TP=8") for name in names)
        text = "".join(f". /s/{name}\n" for name in names) + "vllm serve M -tp $TP"
        found = read_command(["sh", "-c", text], {}, files=(Mount("/s", files),))
        assert found is not None
        return found

    assert facts(16).tensor == 8
    assert facts(17).tensor == Unknown("its script sources more than 16 files")


def test_scripts_are_followed_up_to_a_limit_that_is_told() -> None:
    def facts(count: int) -> CommandFacts:
        last = f"s{count - 1}.sh"
        files = [(f"s{n}.sh", "true") for n in range(count - 1)] + [(last, "vllm serve M -tp 8")]
        text = "".join(f"/s/{name}\n" for name, _ in files)
        found = read_command(["sh", "-c", text], {}, files=(Mount("/s", tuple(files)),))
        assert found is not None
        return found

    assert facts(16).tensor == 8
    told = facts(17)
    assert told.tensor == told.model == Unknown("it runs more than 16 scripts")


def test_shells_are_followed_up_to_a_depth_that_is_told() -> None:
    def facts(depth: int) -> CommandFacts:
        files = [(f"s{n}.sh", f"sh /s/s{n + 1}.sh") for n in range(depth - 1)]
        files.append((f"s{depth - 1}.sh", "vllm serve M -tp 8"))
        found = read_command(["sh", "/s/s0.sh"], {}, files=(Mount("/s", tuple(files)),))
        assert found is not None
        return found

    assert facts(8).tensor == 8
    assert facts(9).tensor == Unknown("its shells are nested more than 8 deep")


def test_a_container_without_a_word_of_its_own_may_mount_a_script() -> None:
    files = (mount("vllm serve M\n", "/scripts/start.sh"),)

    assert read_command([], {}, files=files) is None
    assert read_command([], {"LATE": Unknown("it is not known yet")}, files=files) is None


def test_the_nearest_mount_is_read() -> None:
    files = (mount("a", "/etc/x"), mount("b", "/etc/sub/x"), Mount("/etc/one", (("", "c"),)))

    assert read_file(files, "/etc/x") == "a"
    assert read_file(files, "/etc/./sub/../sub/x") == "b"
    assert read_file(files, "/etc/one") == "c"
    assert isinstance(read_file(files, "/etc/sub/y"), Absent)
    assert (read_file(files, "/usr/x"), read_file(files, "x"), read_file((), "/x")) == (None,) * 3


@pytest.mark.property
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_no_text_makes_the_reader_of_yaml_raise(text: str) -> None:
    assert isinstance(read_yaml(text), dict | Unknown)


_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)
_keys = st.sampled_from(("tensor-parallel-size", "tensor_parallel_size", "vllm", "tp-size", "x"))


@pytest.mark.property
@given(st.dictionaries(_keys | st.integers(), _trees), st.sampled_from(sorted(VECTORS)))
def test_no_config_file_makes_the_reader_raise(config: dict[Any, Any], vector: str) -> None:
    facts = read(VECTORS[vector][0], mount(yaml.safe_dump(config)))

    assert facts.engine is not None
