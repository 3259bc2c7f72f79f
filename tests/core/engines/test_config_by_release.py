"""Config files by release: what the engine's own loader makes of a file, on both sides."""

import pytest

from kthena_components.core.engines import CommandFacts, Mount, read_command

IMAGES = {"vllm": "vllm/vllm-openai:v", "sglang": "lmsysorg/sglang:v"}
AT = "/etc/engine/config.yaml"
SGLANG = f"python3 -m sglang.launch_server --model-path M --config {AT}"


def read(release: str, text: str, command: str = f"vllm serve M --config {AT}") -> CommandFacts:
    engine, _, version = release.partition(" ")
    mount = Mount("/etc/engine", (("config.yaml", text), ("more.yaml", "")), None, "ConfigMap 'e'")
    facts = read_command(command.split(), {}, files=(mount,), image=IMAGES[engine] + version)
    assert facts is not None
    return facts


def hard(facts: CommandFacts) -> list[str]:
    return [problem.text for problem in facts.problems if problem.hard]


@pytest.mark.parametrize(
    ("release", "text", "refused"),
    [
        ("vllm 0.6.3", "enforce-eager: true", True),  # --enforce-eager True
        ("vllm 0.6.4", "enforce-eager: true", False),
        ("vllm 0.6.4", "enforce-eager: false", False),
        ("vllm 0.10.1.1", "served-model-name: [a, b]", False),  # one name: "['a', 'b']"
        ("vllm 0.10.1.1", "cuda-graph-sizes: [1, 2]", True),
        ("vllm 0.10.2", "cuda-graph-sizes: [1, 2]", False),
        ("vllm 0.15.1", "speculative-config: {num_speculative_tokens: 3}", True),
        ("vllm 0.16.0", "speculative-config: {num_speculative_tokens: 3}", False),
        ("vllm 0.27.1", "headless: false", False),
        ("vllm 0.33.0", "no-such-option: false", False),
        ("vllm 0.33.0", "no-such-option: true", True),
        ("vllm 0.27.1", "tensor-parallel-size:", True),
    ],
)
def test_vllm_takes_from_a_file_what_its_release_reads(
    release: str, text: str, *, refused: bool
) -> None:
    assert bool(hard(read(release, text))) is refused


@pytest.mark.parametrize(("release", "read_as"), [("vllm 0.10.1.1", 1), ("vllm 0.10.2", 2)])
def test_a_list_is_one_word_or_several(release: str, read_as: int) -> None:
    facts = read(release, "served-model-name: [a, b]")
    assert len(facts.options["--served-model-name"]) == read_as


@pytest.mark.parametrize(
    ("release", "key", "value", "told"),
    [
        ("vllm 0.27.1", "enable-prefix-caching", None, True),
        ("vllm 0.28.0", "enable-prefix-caching", False, False),
        ("vllm 0.28.0", "enable_prefix_caching", None, True),  # --no-enable_prefix_caching
        ("vllm 0.11.0", "enable_prefix_caching", None, True),
        ("vllm 0.8.3", "enable_chunked_prefill", False, False),  # --enable_chunked_prefill False
        ("vllm 0.8.3", "enable-chunked-prefill", None, False),
        ("vllm 0.27.1", "headless", None, False),
        ("vllm 0.27.1", "no-enable-prefix-caching", None, False),
    ],
)
def test_false_in_a_file_turns_a_switch_off_since_a_release(
    release: str, key: str, value: object, *, told: bool
) -> None:
    facts = read(release, f"{key}: false")
    name = "--" + key.replace("_", "-")
    assert facts.options.get(name) is value
    assert hard(facts) == []
    assert [p.remedy for p in facts.problems] == [
        "write no-enable-prefix-caching: true in the file"
    ] * told


@pytest.mark.parametrize(
    ("release", "text", "refused"),
    [
        ("sglang 0.5.7", "no-such-option: false", False),
        ("sglang 0.5.8", "no-such-option: false", True),
        ("sglang 0.5.8", "trust-remote-code: false", False),
        ("sglang 0.5.8", "trust-remote-code: true", False),
        ("sglang 0.5.7", "lora-paths: [a=/x]", False),
        ("sglang 0.5.8", "lora-paths: [a=/x]", True),
        ("sglang 0.5.23", "lora-paths: [a=/x]", True),
        ("sglang 0.5.23", "lora-strict-loading: true", True),
        ("sglang 0.5.13", "json-model-override-args: {a: 1}", False),
        ("sglang 0.5.23", "tp-size: 2", False),
        ("sglang 0.5.23", "tp_size: 2", True),
    ],
)
def test_sglang_takes_from_a_file_what_its_release_reads(
    release: str, text: str, *, refused: bool
) -> None:
    assert bool(hard(read(release, text, SGLANG))) is refused


@pytest.mark.parametrize(
    ("release", "text", "because"),
    [
        ("vllm 0.33.0", "a: [", "it is not valid YAML"),
        ("vllm 0.33.0", "a: 1\n---\nb: 2\n", "it is not valid YAML"),
        ("vllm 0.33.0", "[1, 2]", "it contains no map"),
        ("vllm 0.33.0", "# later\n", "it is empty"),
        ("vllm 0.6.4", "", "it is empty"),
        ("vllm 0.33.0", "1: 2", "its key 1 is not text"),
        ("sglang 0.5.23", "a: [", "it is not valid YAML"),
        ("sglang 0.5.23", "words", "it contains no map"),
        ("sglang 0.5.23", "yes: 1", "its key True is not text"),
        ("sglang 0.5.23", "", ""),
        ("vllm 0.33.0", "x: &x 1\ny: *x", ""),
        ("vllm 0.33.0", "[" * 30 + "]" * 30, ""),
    ],
)
def test_a_file_that_no_release_reads_ends_the_start(release: str, text: str, because: str) -> None:
    engine = release.partition(" ")[0]
    command = SGLANG if engine == "sglang" else f"vllm serve M --config {AT}"
    told = hard(read(release, text, command))
    expected = f"{release.partition(' ')[0]}: the file of --config {AT} cannot be read: {because}"
    named = [f"{engine}: {text}" for text in told]
    assert named == ([expected] if because else [])


@pytest.mark.parametrize(
    ("release", "command", "refused"),
    [
        ("vllm 0.33.0", "vllm serve M --config {0} --config {0}", True),
        ("vllm 0.6.4", "vllm serve M --config {0} --config {0}", True),
        ("vllm 0.33.0", "vllm serve M --config {0} --config={0}", False),
        ("vllm 0.33.0", "vllm serve -tp 2 M --config {0}", True),
        ("vllm 0.33.0", "vllm serve --config {0} M", True),
        ("vllm 0.33.0", "vllm serve --config {0} --model M", False),
        ("vllm 0.11.0", "vllm serve --config {0} --model=M", True),
        ("vllm 0.11.1", "vllm serve --config {0} --model=M", False),
        ("vllm 0.33.0", "vllm serve --config {0} $(ALL)", False),
        ("vllm 0.33.0", "vllm serve $(ALL) --config {0}", False),
        ("vllm 0.8.2", "vllm serve --config {0} M", True),
        ("vllm 0.6.0", "vllm serve --config {0} M", False),
        ("vllm 0.33.0", "python3 -m vllm.entrypoints.openai.api_server --config {0}", False),
        ("sglang 0.5.23", SGLANG + " --config {0}", True),
        ("sglang 0.5.23", SGLANG + " --conf {0}", False),
    ],
)
def test_where_the_config_file_is_named(release: str, command: str, *, refused: bool) -> None:
    facts = read(release, "max-running-requests: 2" if "sgl" in release else "max-num-seqs: 8",
                 command.format(AT))  # fmt: skip
    assert bool(hard(facts)) is refused


def test_the_model_may_be_in_the_file() -> None:
    command = f"vllm serve --config {AT} -tp 2"
    assert hard(read("vllm 0.33.0", "model: M", command)) == []
    (told,) = hard(read("vllm 0.33.0", "max-num-seqs: 8", command))
    assert "takes the model first, or from the file" in told
    assert hard(read("vllm 0.33.0", "", f"vllm serve --config {AT}x.yaml -tp 2")) == []


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_abbreviated_config_is_never_read(engine: str) -> None:
    release = {"vllm": "vllm 0.6.0", "sglang": "sglang 0.5.23"}[engine]
    start = "vllm serve M" if engine == "vllm" else "sglang serve --model-path M"
    facts = read(release, "tensor-parallel-size: 8\n", f"{start} --conf {AT}")

    assert (facts.tensor, hard(facts)) == (1, [])
    assert [p.remedy for p in facts.problems if "never read" in p.text] == [f"write --config {AT}"]
