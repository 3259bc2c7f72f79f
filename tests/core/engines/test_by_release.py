"""What a command line means in one release and not in the next."""

import pytest

from kthena_components.core.engines import CommandFacts, image_entrypoint, read_command
from kthena_components.core.engines.options import Option
from kthena_components.core.engines.values import Refused, convert
from kthena_components.core.values.unknown import UNKNOWN_WORD, Unknown
from tests.support.for_each import for_each

VLLM, SGLANG = "vllm/vllm-openai:v", "lmsysorg/sglang:v"


def read(command: str, image: str, **env: str) -> CommandFacts:
    facts = read_command(command.split(), env, image=image)
    assert facts is not None
    return facts


def hard(facts: CommandFacts) -> list[str]:
    return [problem.text for problem in facts.problems if problem.hard]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("0.11.0", ("python3", "-m", "vllm.entrypoints.openai.api_server")),
        ("0.11.1", ("vllm", "serve")),
        ("latest", ("vllm", "serve")),
    ],
)
def test_an_image_without_a_command_starts_what_its_release_does(
    image: str, words: tuple[str, ...]
) -> None:
    name = "vllm/vllm-openai:" + (image if image == "latest" else f"v{image}")
    assert image_entrypoint(name) == words


def test_the_api_server_refuses_a_bare_word_and_later_ignores_it() -> None:
    command = "python3 -m vllm.entrypoints.openai.api_server org/M -tp 2"
    assert hard(read(command, VLLM + "0.9.2")) != []
    ignored = read(command, VLLM + "0.10.0")
    assert (hard(ignored), ignored.model) == ([], None)
    assert "ignores the bare word 'org/M'" in ignored.problems[0].text


def test_the_api_server_may_get_options_from_an_unknown_word() -> None:
    server = "python3 -m vllm.entrypoints.openai.api_server --model org/M"
    found = read(f"{server} {UNKNOWN_WORD} --max-model-len 4096", VLLM + "0.33.0")
    assert isinstance(found.tensor, Unknown)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("version", "command", "refused"),
    [
        ("0.8.2", "vllm serve", True),
        ("0.8.3", "vllm serve", False),
        ("0.8.2", "vllm serve --model=B", True),
        ("0.8.3", "vllm serve --model=B", False),
        ("0.11.0", "vllm serve --model B", True),
        ("0.11.1", "vllm serve --model B", False),
        ("0.11.0", "vllm serve A --model=B", False),
        ("0.11.1", "vllm serve A --model=B", True),
        ("0.33.0", "vllm serve A --model B", True),
    ],
)
def test_where_the_model_stands(version: str, command: str, *, refused: bool) -> None:
    assert bool(hard(read(command, VLLM + version))) is refused


@pytest.mark.parametrize(
    ("version", "words", "refused"),
    [
        ("0.16.0", "-tp 8 M --served-model-name x", False),
        ("0.17.0", "-tp 8 M --served-model-name x", True),
        ("0.33.0", "--served_model_name=x M", True),
        ("0.33.0", "--served-model-name x", True),
        ("0.33.0", "M -tp 8 --served-model-name x", False),
        ("0.33.0", "--model M --served-model-name x", False),
        ("0.33.0", "--served-model-name x --config f.yaml", False),
        ("0.33.0", f"-tp 8 {UNKNOWN_WORD} --served-model-name x", False),
        ("0.33.0", "-tp 8 M", False),
    ],
)
def test_a_served_name_needs_the_model_in_front(version: str, words: str, *, refused: bool) -> None:
    told = hard(read(f"vllm serve {words}", VLLM + version))
    assert any("takes the model first" in text for text in told) is refused


SERVE, LAUNCH = "vllm serve M", "python3 -m sglang.launch_server --model-path M"


@pytest.mark.parametrize(
    ("command", "image"),
    [
        (SERVE, VLLM + "0.6.0"),
        (SERVE, VLLM + "0.33.0"),
        (LAUNCH, SGLANG + "0.5.3"),
        (LAUNCH, SGLANG + "0.5.23"),
    ],
)
def test_no_release_reads_a_config_file_in_one_word_and_that_is_said(
    command: str, image: str
) -> None:
    facts = read(f"{command} --config=/etc/f.yaml --port 80", image)
    assert facts.hidden is None
    assert [(problem.flag, problem.hard) for problem in facts.problems] == [("--config", False)]
    assert "is accepted and never read" in facts.problems[0].text
    separate = read(f"{command} --config /etc/f.yaml --port 80", image)
    assert isinstance(separate.hidden, Unknown)
    assert separate.problems == ()


def test_a_release_without_config_files_refuses_one_in_one_word() -> None:
    (problem,) = read(f"{LAUNCH} --config=/etc/f.yaml", SGLANG + "0.5.2").problems
    assert problem.hard
    assert "0.5.3 is the first release with it" in problem.text


# Releases on both sides of a change: what they take for the model, and whether they start.
@for_each(
    ("version", "words", "model", "refused"),
    [
        ("0.19.1", "--numa-bind-nodes 0 0 1 1 -tp 2 M", "M", True),
        ("0.20.0", "--numa-bind-nodes 0 0 1 1 -tp 2 M", "M", False),
        ("0.33.0", "--numa-bind-nodes 0 0 1 1 M", None, True),
        ("0.8.5", "--cuda-graph-sizes 1 2 4 -tp 2 M", "M", True),
        ("0.9.0", "--cuda-graph-sizes 1 2 4 -tp 2 M", "M", False),
        ("0.12.0", "--cuda-graph-sizes 1 2 4 -tp 2 M", "M", False),
        ("0.12.0", "--cuda-graph-sizes 1 2 4 M", None, True),
        ("0.13.0", "--cuda-graph-sizes 1 2 4 -tp 2 M", "M", True),
        ("0.18.1", "--lora-target-modules a b -tp 2 M", "M", True),
        ("0.19.0", "--lora-target-modules a b -tp 2 M", "M", False),
        ("0.19.0", "--lora-target-modules a b M", None, False),
        ("0.18.1", "--kv-cache-dtype-skip-layers 1 2 -tp 2 M", "M", True),
        ("0.19.0", "--kv-cache-dtype-skip-layers 1 2 -tp 2 M", "M", False),
        ("0.19.0", "--kv-cache-dtype-skip-layers 1 2 M", None, False),
        ("0.6.0", '--allowed-origins ["*"] M', "M", False),
        ("0.33.0", '--allowed-origins ["*"] M', "M", False),
        ("0.33.0", '--allowed-origins ["a"] ["b"] M', '["b"]', True),
        ("0.8.3", "--hf-token M", None, True),
        ("0.8.4", "--hf-token M", None, False),
        ("0.8.4", "--hf-token -tp 2 M", "M", False),
        ("0.33.0", "--hf-token token M", "M", False),
        ("0.6.0", "--enable-chunked-prefill false M", "M", False),
        ("0.8.4", "--enable-chunked-prefill false M", "M", False),
        ("0.8.5", "--enable-chunked-prefill false M", "false", True),
        ("0.8.4", "M --enable-chunked-prefill=false", "M", False),
        ("0.8.5", "M --enable-chunked-prefill=false", "M", True),
        ("0.30.0", "M --device-memory-utilization 0.8", "M", True),
        ("0.31.0", "M --device-memory-utilization 0.8", "M", False),
    ],
)
def test_options_leave_the_model_where_it_is(
    version: str, words: str, model: str | None, *, refused: bool
) -> None:
    facts = read(f"vllm serve {words}", VLLM + version)
    assert facts.model == model
    assert bool(hard(facts)) is refused


# The parser takes any word, and the configuration rejects it.
@pytest.mark.parametrize(
    ("version", "words", "refused"),
    [
        ("0.32.0", "--kv-cache-dtype fp7", True),
        ("0.33.0", "--kv-cache-dtype fp7", True),
        ("0.33.0", "--kv-cache-dtype fp8", False),
        ("0.32.0", "--kv-cache-dtype octave_k3v4", True),
        ("0.33.0", "--kv-cache-dtype octave_k3v4", False),
        ("0.11.0", "--data-parallel-backend mpi", False),
        ("0.11.1", "--data-parallel-backend mpi", True),
        ("0.33.0", "--data-parallel-backend mpi", True),
        ("0.33.0", "-dpb ray", False),
    ],
)
def test_choices_that_the_configuration_checks(version: str, words: str, *, refused: bool) -> None:
    assert bool(hard(read(f"vllm serve M {words}", VLLM + version))) is refused


@pytest.mark.parametrize(
    ("version", "size", "refused"),
    [("0.10.1", 1, True), ("0.10.2", 2, False), ("0.23.0", 2, False), ("0.24.0", 1, False)],
)
def test_dc_is_an_option_of_its_own_since_0_24(version: str, size: int, *, refused: bool) -> None:
    facts = read("vllm serve M -tp 2 -dc 2", VLLM + version)
    assert facts.decode_context == size
    assert bool(hard(facts)) is refused


def test_expert_parallelism_is_what_the_last_switch_says() -> None:
    image = VLLM + "0.33.0"
    assert read("vllm serve M -ep --disable-expert-parallel", image).expert is False
    assert read("vllm serve M --no-enable-expert-parallel -ep", image).expert is True


def test_sizes_of_sglang_have_units_since_0_5_10() -> None:
    command = "python3 -m sglang.launch_server --model M --context-length "
    assert read(command + "128k", SGLANG + "0.5.10").max_model_len == 128_000
    assert read(command + "128Ki", SGLANG + "0.5.10").max_model_len == 131_072
    assert hard(read(command + "128k", SGLANG + "0.5.9")) != []
    assert hard(read(command + "128K", SGLANG + "0.5.10")) != []


def test_layers_on_the_host_and_long_requests_are_seen() -> None:
    image = VLLM + "0.33.0"
    assert read("vllm serve M --offload-group-size 8", image).host_offload is True
    assert read("vllm serve M", image).host_offload is False
    assert (
        read("vllm serve M", image, VLLM_ALLOW_LONG_MAX_MODEL_LEN="1").long_context_allowed is True
    )
    assert (
        read("vllm serve M", image, VLLM_ALLOW_LONG_MAX_MODEL_LEN="0").long_context_allowed is False
    )


def test_a_start_rank_over_nodes_is_balanced_for_each_pod() -> None:
    image = VLLM + "0.33.0"
    over = "vllm serve M -dp 4 --nnodes 2 --data-parallel-start-rank 2"
    assert read(over, image).data_mode == "hybrid"
    assert read(f"{over} --headless", image).data_mode == "internal"


@pytest.mark.parametrize(
    ("version", "value", "refused"),
    [
        ("0.9.2", "image=10", False),
        ("0.9.2", "image=1,video=0", False),
        ("0.8.5", "image=10", False),
        ("0.9.2", "image", True),
        ("0.9.2", "image=many", True),
        ("0.9.2", '{"image":10}', False),
        ("0.10.0", "image=10", True),
        ("0.10.0", '{"image":10}', False),
    ],
)
def test_pairs_stood_in_for_json(version: str, value: str, *, refused: bool) -> None:
    command = f"vllm serve m --limit-mm-per-prompt {value}"
    assert bool(hard(read(command, VLLM + version))) is refused


@pytest.mark.parametrize(
    ("command", "image", "refused"),
    [
        # 0.6 takes a value for this switch, and no release for the other one.
        ("vllm serve m --enable-chunked-prefill=false", "example.com/vllm:1", False),
        ("vllm serve m --enable-chunked-prefill=maybe", "example.com/vllm:1", True),
        ("vllm serve m --headless=1", "example.com/vllm:1", True),
        ("vllm serve m --enable-chunked-prefill=false", VLLM + "0.99.0", False),
        ("vllm serve m --enable-chunked-prefill=false", VLLM + "0.33.0", True),
        # The next release may be the one that takes units.
        ("python3 -m sglang.launch_server --model m --context-length 8k", SGLANG + "0.4.5", False),
        ("python3 -m sglang.launch_server --model m --context-length 8K", SGLANG + "0.4.5", True),
        ("python3 -m sglang.launch_server --model m --context-length", SGLANG + "0.99.0", True),
        ("vllm serve m --tensor-parallel-size 0", "example.com/vllm:1", True),
        ("vllm serve m --max-model-len auto", VLLM + "0.5.5", False),
        ("vllm serve m --max-model-len auto", VLLM + "0.13.0", True),
    ],
)
def test_a_value_that_another_release_takes_is_advice_where_the_release_is_not_known(
    command: str, image: str, *, refused: bool
) -> None:
    facts = read(command, image)
    told = [problem for problem in facts.problems if "short for" not in problem.text]
    assert bool(hard(facts)) is refused
    assert all(refused or "checked against" in problem.text for problem in told)
    assert told


def test_pairs_are_advice_where_the_release_is_not_known() -> None:
    facts = read("vllm serve m --limit-mm-per-prompt image=10", "registry.example.com/vllm:1")
    assert hard(facts) == []
    assert [problem.flag for problem in facts.problems] == ["--limit-mm-per-prompt"]


@pytest.mark.parametrize(
    ("kind", "word", "refused"),
    [
        ("object", "{}", False),
        ("object", "3", True),
        ("object", "[]", True),
        ("object", "None", True),
        ("object?", "None", False),
        ("sized-object", "true", True),
        ("sized-object", '{"a": 1}', False),
    ],
)
def test_a_configuration_is_an_object_of_json(kind: str, word: str, *, refused: bool) -> None:
    value = convert(Option("--kv-transfer-config", type=kind), word, word, in_shell=True)
    assert isinstance(value, Refused) is refused


@pytest.mark.parametrize(
    ("version", "command", "model"),
    [
        ("0.33.0", "vllm serve --model A --model B", "A"),
        ("0.11.1", "vllm serve -tp 2 --model=A --model B", "A"),
        ("0.11.0", "vllm serve --model=A --model=B", "B"),
        ("0.33.0", "python3 -m vllm.entrypoints.openai.api_server --model A --model B", "B"),
    ],
)
def test_of_two_models_the_serve_command_moves_the_first_to_the_front(
    version: str, command: str, model: str
) -> None:
    facts = read(command, VLLM + version)
    counts = "first" if model == "A" else "last"
    assert (facts.model, facts.options["--model"]) == (model, model)
    assert facts.where["model"].endswith(model)
    assert [problem.text for problem in facts.problems] == [
        f"--model is given different values (A, B); the {counts} one counts"
    ]


@pytest.mark.parametrize(
    ("version", "words", "refused"),
    [
        ("0.33.0", "--tensor-parallel-size.x 2", True),
        ("0.9.1", "--tensor_parallel_size.x=2", True),
        ("0.33.0", "--safetensors-load-strategy.x 2", True),  # not among its choices
        ("0.33.0", "--enable-sleep-mode.level 1", True),  # a switch: the JSON is left over
        ("0.33.0", "--dtype.x 1", True),
        ("0.33.0", "--tokenizer.x 1", False),  # JSON is a string
        ("0.33.0", "--speculative-con.num_speculative_tokens 3", False),
        ("0.33.0", "--compilation-config.mode", True),
        ("0.33.0", "--compilation-config.mode 3", False),
        ("0.33.0", "--kv.role x", True),  # ambiguous
        ("0.33.0", "-cc.mode 3", False),
    ],
)
def test_a_dotted_option_is_json_for_the_option_before_the_dot(
    version: str, words: str, *, refused: bool
) -> None:
    assert bool(hard(read(f"vllm serve M {words}", VLLM + version))) is refused


def test_a_dotted_abbreviation_sets_its_option() -> None:
    facts = read("vllm serve M --speculative-con.num_speculative_tokens 3", VLLM + "0.33.0")
    assert facts.speculative_tokens == 3


@pytest.mark.parametrize(
    ("version", "words", "refused"),
    [
        ("0.11.1", '-O {"mode":3}', False),
        ("0.12.0", '-O {"mode":3}', True),
        ("0.33.0", "-O9", True),
        ("0.33.0", "-O 2", False),
        ("0.33.0", "-O=2", False),
    ],
)
def test_a_level_of_optimization_is_a_number_since_it_is_no_json(
    version: str, words: str, *, refused: bool
) -> None:
    assert bool(hard(read(f"vllm serve M {words}", VLLM + version))) is refused


@pytest.mark.parametrize(
    ("version", "refused", "told"),
    [
        ("0.11.0", True, "vLLM 0.11.0 has no flag '--dcp' and does not start with it"),
        ("0.17.1", False, "'--dcp' is short for --dcp-kv-cache-interleave-size"),
        ("0.18.0", True, "vLLM 0.18.0 has no flag '--dcp' and does not start with it"),
    ],
)
def test_a_flag_of_another_engine_may_be_short_for_an_option(
    version: str, told: str, *, refused: bool
) -> None:
    facts = read("vllm serve M -tp 4 --dcp 4", VLLM + version)
    (problem,) = facts.problems
    assert (problem.hard, facts.decode_context == 1) == (refused, not refused)
    assert problem.text.startswith(told)
    if version != "0.11.0":
        assert problem.remedy == "write --decode-context-parallel-size"
