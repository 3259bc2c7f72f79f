"""`kthena-components size`: its table, its JSON, what it writes, and wrong usage."""

import ast
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kthena_components.cli.main import main
from kthena_components.cli.size.output import chosen
from kthena_components.cli.size.question import UsageError
from kthena_components.compiler.compile import compile_serving
from kthena_components.sizing import Shape
from tests.support.for_each import for_each

LLAMA, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B"
CONFIG = {
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128,
    "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 8192,
}  # fmt: skip


def size(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run the command and return its status and its two strings."""
    try:
        status = main(["size", *words])
    except SystemExit as ended:
        status = int(ended.code or 0)
    shown = capsys.readouterr()
    return status, shown.out, shown.err


WRONG = {
    "an unknown model": (
        ["Qwen/Qwen3-32Bx", "--gpu", "h100"],
        "is not in the table of models; if it is Qwen/Qwen3-32B, write that; otherwise",
    ),
    "the beginning of a model's name": (
        ["qwen3-235b", "--gpu", "h100"],
        "'qwen3-235b' is not in the table of models; if it is Qwen/Qwen3-235B-A22B, write",
    ),
    "the beginning of several names": (
        ["llama-3.3-70b", "--gpu", "h100"], "; if it is meta-llama/Llama-3.3-70B-Instruct, write",
    ),
    "words of several names": (
        ["llama-70b", "--gpu", "h100"], "is not in the table of models; if it is meta-llama/",
    ),
    "a model's name without a dash": (
        ["llama3", "--gpu", "h100"], "if it is meta-llama/Llama-3.1-8B, write that; otherwise",
    ),
    "a slice as a resource": ([QWEN, "--gpu", "nvidia.com/mig-3g.40gb"], "is a slice of a GPU"),
    "a slice": ([QWEN, "--gpu", "1g.10gb"], "is a slice of a GPU"),
    "TensorRT-LLM on another maker's GPU": (
        [QWEN, "--gpu", "mi300x", "--engine", "trtllm"], "runs on GPUs of NVIDIA, and not on AMD",
    ),
    "the image of another engine": (
        [QWEN, "--gpu", "h100", "--image", "lmsysorg/sglang:v0.5.5"], "add --engine sglang",
    ),
    "an address": (
        ["x", "--gpu", "h100", "--hf-config", "https://example.org/config.json"],
        "--hf-config https://example.org/config.json: write the path of a file, and download",
    ),
    "an image that is not for the GPU": (
        [QWEN, "--gpu", "tpu-v6e", "--write", "native"],
        "is for GPUs of NVIDIA: name an image for Google TPU v6e with --image",
    ),
    "an accelerator whose cores are ranks": (
        [QWEN, "--gpu", "trn2"], "--gpu trn2: each AWS Trainium2 has several cores, and an engine",
    ),
    "an unknown GPU": ([QWEN, "--gpu", "h1000"], "'h1000' is not in the table of GPUs; near"),
    "a length above the model's": (
        [LLAMA, "--gpu", "h100", "--context", "200000"],
        f"--context 200000: {LLAMA} supports 131072 tokens at most",
    ),
    "a length that is not a number": (
        [QWEN, "--gpu", "h100", "--context", "32k"], "'32k' is not a number of tokens",
    ),
    "no requests": ([QWEN, "--gpu", "h100", "--requests", "0"], "'0' is not a number of requests"),
    "a price that is not a number": (
        [QWEN, "--gpu", "h100", "--price", "cheap"], "'cheap' is not an amount of money",
    ),
    "a price that is not finite": (
        [QWEN, "--gpu", "h100", "--price", "nan"], "'nan' is not an amount of money",
    ),
    "nodes that are not sizes": ([QWEN, "--gpu", "h100", "--nodes", "many"], "'many': write"),
    "nodes without GPUs": ([QWEN, "--gpu", "h100", "--nodes", "4x0"], "--nodes '4x0': write"),
    "a format without a copy": (
        [QWEN, "--gpu", "h100", "--precision", "mxfp4"],
        "the table of models has no such copy of Qwen/Qwen3-32B; it has bf16 and fp8 (",
    ),
    "an unknown target": ([QWEN, "--gpu", "h100", "--write", "kthen"], "write 'kthena'"),
    "an unknown shape": (
        [QWEN, "--gpu", "h100", "--nodes", "1x2", "--write", "native", "--shape", "7x1x1"],
        "--shape 7x1x1: no shape of these sizes fits; known: ",
    ),
    "a shape without a target": ([QWEN, "--gpu", "h100", "--shape", "1x1x1"], "only for --write"),
    "a config that is not there": (
        ["own/model", "--gpu", "h100", "--hf-config", "/nowhere"], "--hf-config /nowhere cannot",
    ),
    "weights of unknown size": (
        ["Qwen/Qwen3.5-27B-GPTQ-Int4", "--gpu", "h100"], "write --weights GIB",
    ),
    "a type of the cache that the engine does not have": (
        [QWEN, "--gpu", "h100", "--engine", "sglang", "--kv-cache-dtype", "fp8"],
        "--kv-cache-dtype has 'fp8', and takes one of: auto, fp8_e5m2, fp8_e4m3",
    ),
    "a type of the cache whose size is not known": (
        [QWEN, "--gpu", "h100", "--kv-cache-dtype", "octave_k3v3"],
        "the size of a KV cache of 'octave_k3v3' is not known",
    ),
    "a release without types of the cache": (
        [QWEN, "--gpu", "h100", "--engine", "trtllm", "--kv-cache-dtype", "fp8",
         "--image", "nvcr.io/nvidia/tensorrt-llm/release:0.20.0"],
        "has no option --kv_cache_dtype; write a newer --image",
    ),
}  # fmt: skip


@for_each("name", WRONG)
def test_wrong_usage_is_one_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, sentence = WRONG[name]
    status, out, error = size(capsys, *words)
    assert (status, out) == (2, "")
    last = error.splitlines()[-1]
    assert last.startswith("kthena-components size: ")
    assert sentence in last


def test_the_table_marks_the_cheapest_shape(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, error = size(capsys, QWEN, "--gpu", "h200", "--price", "2.5")
    assert (status, error) == (0, "")
    (marked,) = [line for line in out.splitlines() if line.startswith("*   ")]
    assert marked.split()[-3:] == ["1", "24", "60.00"]
    assert "Throughput and latency are not estimated." in out


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = size(capsys, LLAMA, "--gpu", "l4", "-o", "json", "--price", "2", "--nodes", "4")
    found = json.loads(out)
    best, *others = found["shapes"]
    assert (best["recommended"], best["gpus"], best["cost_per_day"]) == (True, 2, 96)
    assert not any(row["recommended"] for row in others)
    assert [one["rule"] for one in found["impossible"]] == ["memory-one-sequence"]


def test_no_shape_names_the_smallest_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = size(capsys, "meta-llama/Llama-3.1-405B-Instruct", "--gpu", "h100",
                          "--nodes", "8")  # fmt: skip
    assert status == 1
    assert "No shape fits. The smallest that would: TP × PP × DP 8 × " in out
    assert "[memory-weights-fit]" in out


def test_nodes_may_be_written_with_a_multiplication_sign(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = [size(capsys, QWEN, "--gpu", "h100", "--nodes", nodes)[1]
             for nodes in ("2x4", "2×4", "2 × 4")]  # fmt: skip
    assert len(set(texts)) == 1
    assert " on 2 × 4 NVIDIA H100" in texts[0]


def test_a_copy_in_another_format_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = size(capsys, QWEN, "--gpu", "h100", "--precision", "int4")
    assert out.startswith("Qwen/Qwen3-32B-AWQ: 18.0 GiB of weights, int4\n")


@for_each("target", ["native", "kthena", "lws", "matrixinfer"])
def test_a_shape_is_written_for_a_backend(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = size(capsys, LLAMA, "--gpu", "l4", "--write", target, "--shape", "4x1x1")
    assert status == 0
    assert "--tensor-parallel-size" in out
    assert all(body["kind"] for body in yaml.safe_load_all(out))


MOE = ("Qwen/Qwen3-235B-A22B", "--gpu", "h100", "--write", "stack", "--shape")


@for_each(
    ("shape", "has", "lacks"),
    [
        ("8x1x1", "tensor: 8", "expert"),
        ("8x1x1,ep,dcp=2", "--decode-context-parallel-size", "--node-rank"),
        ("8X1X1,EP,DCP=2", "expert", "--node-rank"),
        ("1x1x16", "expert", "decode-context"),
    ],
)
def test_a_shape_is_chosen_by_experts_and_cache_too(
    shape: str, has: str, lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = size(capsys, *MOE, shape)
    assert status == 0
    assert has in out
    assert lacks not in out


def test_sizes_of_several_shapes_are_no_choice() -> None:
    shapes = (Shape(tensor=8, expert=True), Shape(tensor=8, expert=True, decode_context=2))
    answer: Any = SimpleNamespace(rows=[SimpleNamespace(shape=shape) for shape in shapes])
    with pytest.raises(UsageError, match=r"; write 8x1x1,ep or 8x1x1,ep,dcp=2$"):
        chosen(answer, "8x1x1")


def test_a_shape_that_is_not_there_gets_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, error = size(capsys, *MOE, "8x1x9,ep")
    assert status == 2
    assert "no shape of these sizes fits; known: " in error
    assert " 8x1x1,ep,dcp=2 " in error


def test_what_a_backend_refuses_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, error = size(capsys, QWEN, "--gpu", "h100", "--write", "kaito")
    assert (status, out) == (1, "")
    assert error.startswith("--write kaito: 1 problem\n")


def test_a_program_has_the_arguments_of_the_shape(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = size(capsys, LLAMA, "--gpu", "l4", "--write", "python", "--context", "8192")
    (call,) = [node.value for node in ast.parse(out).body if isinstance(node, ast.Expr)
               and isinstance(node.value, ast.Call)]  # fmt: skip
    args = ast.literal_eval(call.args[1])
    (role,) = compile_serving(args).plan.roles
    assert "--max-model-len" in role.entry["spec"]["containers"][0]["command"]


def test_a_model_of_its_own_is_read_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    words = ("own/model", "--gpu", "h100", "--hf-config", str(tmp_path))
    assert "write --weights GIB" in size(capsys, *words)[2]
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 16 * 2**30}}))
    assert size(capsys, *words)[1].startswith("own/model: 16.0 GiB of weights\n")
    assert size(capsys, *words, "--weights", "20")[1].startswith("own/model: 20.0 GiB")
    status, out, _ = size(capsys, *words, "--write", "stack")
    assert status == 0
    assert "hf_config:" in out


@for_each(
    ("text", "wanted"),
    [
        ('{"quantization": {"quant_algo": "NVFP4"}}', "nvfp4"),
        ('{"quantization": {"quant_algo": null}}', "bf16"),
        ('{"quantization": []}', "bf16"),
        ("{", "bf16"),
    ],
)
def test_the_format_may_stand_beside_the_config(
    text: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": "bfloat16"}))
    (tmp_path / "hf_quant_config.json").write_text(text)
    words = ("own/model", "--gpu", "b200", "--hf-config", str(tmp_path), "--weights", "16")
    assert size(capsys, *words)[1].startswith(f"own/model: 16.0 GiB of weights, {wanted}\n")


@for_each("text", ["[]", "{", '{"metadata": {"total_size": "1"}}', '{"metadata": []}'])
def test_an_index_that_states_no_size_is_as_none(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors.index.json").write_text(text)
    words = ("own/model", "--gpu", "h100", "--hf-config", str(tmp_path))
    assert "write --weights GIB" in size(capsys, *words)[2]


@for_each(
    ("image", "title", "because"),
    [
        ("vllm/vllm-openai:v0.9.1-cu126", "vLLM 0.9.1 on", ""),
        ("vllm/vllm-openai:latst", "vLLM 0.33.0 on", "the image's tag states no release of vLLM"),
        ("vllm/vllm-openai", "vLLM 0.33.0 on", "the image's tag states no release of vLLM"),
        ("vllm-openai:latst", "vLLM 0.33.0 on", "the image is not vLLM's own, and may contain"),
        ("nginx:1.2", "vLLM 0.33.0 on", "the image is not vLLM's own, and may contain another rel"),
        ("vllm/vllm-openai:v99.1", "vLLM 0.33.0 on", "vLLM 99.1 is newer than the known releases"),
    ],
)
def test_a_tag_is_a_release_only_if_it_is_known(
    image: str, title: str, because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (LLAMA, "--gpu", "h100", "--nodes", "1", "--image", image)
    lines = size(capsys, *words)[1].splitlines()
    assert lines[1].startswith(title)
    assert lines[2].startswith(f"Computed for vLLM 0.33.0, because {because}" if because else "")
    assert lines[2].endswith("A tag with a known release: vllm/vllm-openai:v0.33.0" * bool(because))
    found = json.loads(size(capsys, *words, "-o", "json")[1])
    assert found["release"] == title.split()[1]
    assert (found["release_not_known"] or "").startswith(because)


@for_each("target", ["native", "kthena", "lws", "matrixinfer", "python", "typescript", "stack"])
def test_what_is_written_asks_for_the_gpu(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    for gpu, key, label in (
        ("h200", "nvidia.com/gpu.product", "NVIDIA-H200"),
        ("p5.48xlarge", "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"),
        ("mi300x", "amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM"),
    ):
        status, out, error = size(capsys, LLAMA, "--gpu", gpu, "--write", target)
        assert (status, error) == (0, "")
        if target in {"python", "typescript", "stack"}:
            word = {"p5.48xlarge": "h100"}.get(gpu, gpu)
            assert re.search(rf"\bgpu\"?: \"?{word}\b", out)
        else:
            assert f"{key}: {label}" in out


def test_a_gpu_without_a_label_of_nodes_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = (LLAMA, "--gpu", "Ascend910B", "--write", "native", "--nodes", "8",
             "--image", "quay.io/ascend/vllm-ascend:v0.17.0")  # fmt: skip
    status, out, _ = size(capsys, *words)
    assert status == 0
    assert "nodeSelector" not in out


@for_each("target", ["booster", "kaito"])
def test_a_backend_that_takes_no_gpu_is_not_asked_for_one(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (LLAMA, "--gpu", "h100", "--nodes", "2", "--write", target)
    told = size(capsys, *words)[2]
    assert f"--write {target}: " in told
    assert "resources.gpu" not in told


def test_vllm_on_amd_has_the_image_for_rocm(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = size(capsys, LLAMA, "--gpu", "mi300x", "--write", "native", "--nodes", "1")
    assert status == 0
    assert "image: vllm/vllm-openai-rocm:v" in out


def test_an_image_that_is_not_for_the_gpu_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = (QWEN, "--gpu", "mi300x", "--engine", "sglang", "--nodes", "1")
    assert "is for GPUs of NVIDIA: name an image for AMD Instinct MI300X" in size(capsys, *words)[1]
    own = (*words, "--image", "lmsysorg/sglang:v0.5.10-rocm700-mi30x")
    assert "is for GPUs" not in size(capsys, *own)[1]


def test_where_nothing_fits_shorter_requests_and_more_nodes_are_offered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scout = "meta-llama/Llama-4-Scout-17B-16E-Instruct"
    status, out, _ = size(capsys, scout, "--gpu", "h100", "--nodes", "8")
    assert status == 1
    assert ": --nodes 2x8. Shorter requests fit on " in out
    length = re.findall(r"--context (\d+)", out)[0]
    assert size(capsys, scout, "--gpu", "h100", "--nodes", "8", "--context", length)[0] == 0


def test_the_newest_image_of_tensorrt_llm_is_a_known_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (QWEN, "--gpu", "h100", "--nodes", "2")
    assert "Computed for" not in size(capsys, *words, "--engine", "trtllm")[1]
    assert size(capsys, *words, "--precision", "FP8")[0] == 0


# Engine, a type of 8 bits: the word that its engine takes.
TYPES = [
    ("vllm", "fp8", "--kv-cache-dtype"),
    ("sglang", "fp8_e4m3", "--kv-cache-dtype"),
    ("trtllm", "fp8", "--kv_cache_dtype"),
]


@for_each(("engine", "kind", "flag"), TYPES)
def test_a_type_of_the_cache_counts_and_is_written(
    engine: str, kind: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [QWEN, "--gpu", "h200", "--nodes", "1", "--engine", engine]

    def tokens(*more: str) -> int:
        status, out, _ = size(capsys, *asked, *more, "-o", "json")
        assert status == 0
        return int(json.loads(out)["shapes"][0]["tokens"])

    half = ["--kv-cache-dtype", kind]
    assert tokens(*half) == pytest.approx(2 * tokens(), rel=0.001)
    _, written, _ = size(capsys, *asked, *half, "--write", "native")
    assert re.search(rf"{flag}\W+{kind}\b", written)
