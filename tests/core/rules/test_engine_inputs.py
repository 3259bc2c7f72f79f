"""model-stated, context-within-model and engine-config-file: what an engine is told it serves."""

from dataclasses import replace

import pytest

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, run_rule
from kthena_components.core.rules.context_and_scheduler_sizes import context_within_model
from kthena_components.core.rules.engine_options_and_config_file import engine_config_file
from kthena_components.core.rules.image_model_hf_token_config_map_key import model_stated
from kthena_components.core.values.unknown import MaybeBool, Unknown
from tests.support.startup import IMAGES, levels, serving, told

LLAMA, COPY, QWEN = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B"
"""Two that are sourced from their own config.json, and between them one that is not."""


def modelless(command: str, image: str) -> list[Finding]:
    return run_rule(model_stated, serving(command, image))


@pytest.mark.parametrize(
    ("version", "model"),
    [("0.9.2", "facebook/opt-125m"), ("0.10.0", "Qwen/Qwen3-0.6B"), ("0.33.0", "Qwen/Qwen3-0.6B")],
)
def test_a_vllm_without_a_model_serves_one_of_its_own(version: str, model: str) -> None:
    (finding,) = modelless("vllm serve --tensor-parallel-size 8", f"{IMAGES['vllm']}:v{version}")
    assert finding.level is Level.ADVISORY
    assert str(finding) == (
        f"here: engine 'e' names no model, and vLLM {version} serves {model} then. Write the model "
        "after `vllm serve`, or --model. [model-stated]"
    )


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve m",
        "python3 -m dynamo.vllm --tensor-parallel-size 8",
        "python3 /workspace/vllm/inference_api.py --tensor-parallel-size 8",
        "ray start --block --address=a:6379",
    ],
    ids=["stated", "dynamo", "kaito", "ray"],
)
def test_other_programs_may_do_without(command: str) -> None:
    assert modelless(command, f"{IMAGES['vllm']}:v0.33.0") == []


def test_a_worker_names_the_model_as_well() -> None:
    image = f"{IMAGES['sglang']}:v0.5.23"
    line = "python3 -m sglang.launch_server --tp-size 16 --nnodes 2"
    (entry,) = serving(f"{line} --model-path m", image).engines
    (other,) = serving(line, image).engines
    worker = replace(other.entry, command_path="there")
    both: EngineFacts = replace(entry, worker=worker)
    (finding,) = run_rule(model_stated, ServingFacts(path="", name="s", engines=(both,)))
    assert finding.path == "there"


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ("vllm 0.6.0", f"{LLAMA} --max-model-len 131072"),
        ("vllm 0.33.0", "org/unknown --max-model-len 9999999"),
        ("vllm 0.33.0", f"""{LLAMA} --max-model-len 262144 --hf-overrides '{{"a": 1}}'"""),
        ("sglang 0.4.10.post2", f"{QWEN} --context-length 65536"),
        ("sglang 0.5.23", f"{QWEN} --context-length 40960"),
        ("sglang 0.5.17-rocm720-mi30x", f"{QWEN} --context-length 65536"),
    ],
)
def test_requests_that_the_model_was_made_for_are_right(release: str, line: str) -> None:
    assert told(context_within_model, release, line) == []


@pytest.mark.parametrize(
    ("release", "line", "message", "level"),
    [
        (
            "vllm 0.6.0",
            f"{LLAMA} --max-model-len 131073",
            (
                f"has --max-model-len 131073, and {LLAMA} supports 131072 tokens. Write "
                "--max-model-len 131072 or less, or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 and check "
                "the answers"
            ),
            "mandatory",
        ),
        (
            "sglang 0.5.1",
            f"{QWEN} --context-length 65536",
            (
                f"has --context-length 65536, and {QWEN} supports 40960 tokens. Write "
                "--context-length 40960 or less, or set "
                "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 and check the answers"
            ),
            "mandatory",
        ),
        (
            "vllm 0.33.0",
            f"{COPY} --max-model-len 65536",
            (
                f"has --max-model-len 65536, and {COPY} supports 40960 tokens. Write "
                "--max-model-len 40960 or less, or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 and check "
                "the answers"
            ),
            "advisory",
        ),
    ],
    ids=["vllm", "sglang", "not-its-own-config"],
)
def test_longer_requests_are_refused(release: str, line: str, message: str, level: str) -> None:
    assert told(context_within_model, release, line) == [message]
    assert levels(context_within_model, release, line) == [level]


@pytest.mark.parametrize(
    ("allowed", "level"),
    [(True, []), (Unknown("late"), [Level.UNKNOWN]), (False, [Level.MANDATORY])],
)
def test_a_variable_lets_an_engine_go_on(allowed: MaybeBool, level: list[Level]) -> None:
    image = f"{IMAGES['vllm']}:v0.33.0"
    (engine,) = serving(f"vllm serve {LLAMA} --max-model-len 200000", image).engines
    assert engine.entry.command is not None
    command = replace(engine.entry.command, long_context_allowed=allowed)
    engine = replace(engine, entry=replace(engine.entry, command=command))
    found = run_rule(context_within_model, ServingFacts(path="", name="s", engines=(engine,)))
    assert [finding.level for finding in found] == level


@pytest.mark.parametrize(
    ("release", "path", "taken"),
    [
        ("vllm 0.33.0", "/etc/vllm.yaml", True),
        ("vllm 0.6.0", "/etc/vllm.yml", True),
        ("vllm 0.33.0", "/etc/vllm.YAML", False),
        ("vllm 0.33.0", "/etc/vllm.json", False),
        ("vllm 0.33.0", "/etc/vllm", False),
        ("sglang 0.5.23", "/etc/sglang.YAML", True),
        ("sglang 0.5.3", "/etc/sglang.json", False),
    ],
)
def test_a_config_file_is_named_by_its_form(release: str, path: str, taken: bool) -> None:
    assert levels(engine_config_file, release, f"m --config {path}") == ["mandatory"] * (not taken)


def test_a_config_file_that_is_not_read_may_have_any_name() -> None:
    assert told(engine_config_file, "vllm 0.33.0", "m --config=/etc/vllm.json") == []
