"""memory-weights-fit and memory-one-sequence, by command lines on GPUs that a pod names."""

import re
from dataclasses import replace
from typing import Any

import pytest

from kthena_components.checker.levels import environment_levels
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Level
from kthena_components.core.findings import run_rule as run
from kthena_components.core.rules.memory_weights_fraction_offload import (
    memory_one_sequence,
    memory_weights_fit,
)
from kthena_components.core.values.unknown import MaybeBool, Unknown
from tests.support.for_each import for_each
from tests.support.specs import gpu_template

LLAMA, LARGE = "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-405B-Instruct"
DEEPSEEK, KIMI = "deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2-Instruct"
DEEPEP = "--all2all-backend deepep_high_throughput"
SGLANG = "python3 -m sglang.launch_server --model-path"


def told(command: str, gib: float = 80, image: str = "vllm/vllm-openai:v0.20.0") -> list[str]:
    """Check an engine on GPUs of some memory, and give what is said without place and name."""
    pod: dict[str, Any] = gpu_template(command)
    pod["spec"]["containers"][0]["image"] = image
    pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.memory": str(int(gib * 1024))}
    return checked(pod)


def checked(pod: dict[str, Any], **changed: Any) -> list[str]:
    """Check a pod, with facts of its command line put in place of those that are read."""
    entry = read_pod(pod, "entry", command_path="here")
    if changed and entry.command is not None:
        entry = replace(entry, command=replace(entry.command, **changed))
    engine = EngineFacts(path="e", name="decode", pods=1, replicas=1, entry=entry, worker=None)
    facts = ServingFacts(path="", name="s", engines=(engine,))
    found = [f for rule in (memory_weights_fit, memory_one_sequence) for f in run(rule, facts)]
    start = "here: engine 'decode' "
    assert all(str(finding).startswith(start) for finding in found)
    mark = {Level.MANDATORY: "!", Level.ADVISORY: "?", Level.UNKNOWN: "-"}
    return [f"{mark[f.level]} {str(f).removeprefix(start)}" for f in found]


REFUSED = {
    f"vllm serve {LARGE} -tp 8": (
        80, ("puts 94.5 GiB of weights on each GPU, 756 GiB of meta-llama/Llama-3.1-405B-Instruct "
        "over tensor 8, but may use 73.6 GiB of it: 0.92 × 80 GiB of a GPU of 81920 MiB. Split "
        "the model over 16 GPUs or more (tensor 16 × pipeline 1, or tensor 8 × pipeline 2), or use "
        "GPUs of 103 GiB or more"),
    ),
    f"vllm serve {DEEPSEEK} -tp 8": (80, "puts 78.4 GiB of weights on each GPU"),
    f"vllm serve {LLAMA} -tp 4 -pp 2 --gpu-memory-utilization 0.2": (
        80, ("puts 16.4 GiB of weights on each GPU, 131.4 GiB of meta-llama/"
        "Llama-3.3-70B-Instruct over tensor 4 × pipeline 2, but may use 16 GiB"),
    ),
    f"{SGLANG} {LLAMA} --tp-size 2 --mem-fraction-static 0.8": (80, "may use 64 GiB"),
    f"trtllm-serve {LLAMA} --tp_size 1": (80, "may use 80 GiB of it: 80 GiB of a GPU"),
    f"vllm serve {DEEPSEEK} -tp 1 -dp 8": (80, "puts 94.2 GiB of weights on each GPU"),
}  # fmt: skip


@pytest.mark.parametrize("command", REFUSED)
def test_weights_that_do_not_fit_are_refused(command: str) -> None:
    gib, says = REFUSED[command]
    found = told(command, gib)
    assert len(found) == 1
    assert found[0].startswith("! ")
    assert says in found[0]


SHORT = {
    # 7.9 GiB are left by the weights, and 3.6 GiB are the sampler, the driver, the graphs and NCCL.
    f"vllm serve {LLAMA} -tp 2": (80, "leaves about 3.8 GiB of each GPU for the KV cache"),
    f"vllm serve {KIMI} -tp 8": (141, "leaves about 4.3 GiB of each GPU for the KV cache"),
    f"{SGLANG} {LLAMA} --tp-size 2 --context-length 65536 --mem-fraction-static 0.92": (
        80, "Set --context-length to 30720",
    ),
    f"trtllm-serve {LLAMA} --tp_size 2": (80, "--max_seq_len"),
    f"vllm serve {LLAMA} -tp 2 --gpu-memory-utilization 0.86": (
        80, "leaves nothing of a GPU for the KV cache",
    ),
    "vllm serve openai/gpt-oss-120b": (74, "leaves nothing of a GPU for the KV cache"),
    # 3.8 GiB hold 25,000 tokens of 16 bits, 50,000 of 8 and 90,000 of 4 with their scales.
    f"vllm serve {LLAMA} -tp 2 --max-model-len 90000 --kv-cache-dtype fp8": (
        80, "but one request of 90000 tokens needs 6.9 GiB",
    ),
    f"vllm serve {LLAMA} -tp 2 --max-model-len 160000 --kv-cache-dtype nvfp4": (
        80, "but one request of 160000 tokens needs 6.9 GiB",
    ),
    f"{SGLANG} {LLAMA} --tp-size 2 --context-length 60000 --kv-cache-dtype mxfp8": (
        80, "needs 4.7 GiB",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", SHORT)
def test_a_request_that_does_not_fit_is_told(command: str) -> None:
    gib, says = SHORT[command]
    found = told(command, gib)
    assert len(found) == 1
    assert found[0].startswith("? ")
    assert says in found[0]


TIGHT = {
    # 3.2 GiB ± 2.1 GiB are left, and half of its layers store every token.
    "vllm serve openai/gpt-oss-120b": "one request of 131072 tokens needs 4.5 GiB",
    f"vllm serve {LLAMA} -tp 2 --max-model-len 30000 --kv-cache-dtype fp8": "needs 2.3 GiB",
    # The experts of each copy run on the tokens of all 16.
    f"vllm serve {DEEPSEEK} -tp 1 -dp 16 --max-model-len 64k": "needs 4.2 GiB",
}


@pytest.mark.parametrize("command", TIGHT)
def test_a_request_that_may_not_fit_is_advice(command: str) -> None:
    found = told(command)
    assert len(found) == 1
    assert TIGHT[command] in found[0]
    assert "so it may not start. S" in found[0]


@pytest.mark.parametrize(
    ("command", "gib"),
    [
        (f"vllm serve {LARGE} -tp 8 -pp 2", 80),
        (f"vllm serve {LLAMA} -tp 4", 80),
        (f"vllm serve {DEEPSEEK} -tp 8", 141),
        (f"vllm serve {DEEPSEEK} -tp 8 -pp 2", 80),
        (f"vllm serve {DEEPSEEK} -tp 1 -dp 16 --max-model-len 64k {DEEPEP}", 80),
        (f"vllm serve {KIMI} -tp 8 -pp 2", 141),
        (f"vllm serve {KIMI} -tp 8 --max-model-len 16k", 141),
        (f"vllm serve {LLAMA} -tp 2 --max-model-len auto", 80),
        (f"vllm serve {LLAMA} -tp 2 --kv-cache-memory-bytes 8G", 80),
        (f"vllm serve {LLAMA} -tp 2 -q fp8", 80),
        (f"vllm serve {LLAMA} -tp 2 --max-model-len 22k --kv-cache-dtype fp8", 80),
        (f"vllm serve {LLAMA} -tp 2 --max-model-len 39k --kv-cache-dtype nvfp4", 80),
        (f"vllm serve {LLAMA} -tp 2 --max-model-len 37k --kv-cache-dtype turboquant_4bit_nc", 80),
        ("vllm serve openai/gpt-oss-120b --max-model-len 32k", 80),
        (f"trtllm-serve {LLAMA} --tp_size 4", 80),
        ("nginx", 80),
        ("ray start --address=$(X):6379 --block", 80),
    ],
)
def test_what_fits_is_not_spoken_of(command: str, gib: float) -> None:
    assert told(command, gib) == []


# A checkpoint that was quantised before, and methods that its engine loads it by.
PREQUANTISED = {
    "nvidia/Llama-3.3-70B-Instruct-NVFP4": (39.8, "modelopt modelopt_fp4 modelopt_mixed"),
    "RedHatAI/Llama-3.3-70B-Instruct-NVFP4": (39.8, "compressed-tensors"),
    "nvidia/Llama-3.3-70B-Instruct-FP8": (67.7, "modelopt modelopt_fp8 modelopt_mixed"),
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": (67.7, "compressed-tensors w8a8_fp8"),
    "meta-llama/Llama-3.1-405B-Instruct-FP8": (378, "fp8 fbgemm_fp8 FBGEMM_FP8"),
    "deepseek-ai/DeepSeek-V4-Flash": (145.7, "fp8 deepseek_v4_fp8"),
    "Qwen/Qwen3-32B-AWQ": (18, "awq awq_marlin auto_awq marlin"),
    "Qwen/Qwen3.5-122B-A10B-GPTQ-Int4": (68.5, "gptq gptq_marlin auto_gptq moe_wna16"),
    "Intel/Qwen3.5-122B-A10B-int4-AutoRound": (62.2, "auto-round auto_round inc"),
    "moonshotai/Kimi-K2.5": (554.3, "compressed-tensors"),
    "amd/Kimi-K2.5-MXFP4": (518.7, "quark quark_mxfp4"),
    "openai/gpt-oss-120b": (60.8, "mxfp4 gpt_oss_mxfp4"),
}


@for_each(
    ("model", "method"),
    [(model, method) for model, (_, methods) in PREQUANTISED.items() for method in methods.split()],
)
@for_each("start", ["vllm serve", SGLANG])
def test_a_quantised_copy_keeps_its_weights_by_its_method(
    start: str, model: str, method: str
) -> None:
    found = told(f"{start} {model} --quantization {method}", 10)
    assert f"puts {PREQUANTISED[model][0]:g} GiB of weights on each GPU" in found[0]


# What is left at least of 131.4 GiB of a dense model, and of 437.9 GiB of one with experts.
ONLINE = {
    "fp8": (65.7, 218.9),
    "w8a8_fp8": (65.7, 218.9),
    "ptpc_fp8": (65.7, 218.9),
    "fp8_per_tensor": (65.7, 218.9),
    "fp8_per_block": (65.7, 218.9),
    "fp8_per_channel": (65.7, 218.9),
    "mxfp8": (65.7, 218.9),
    "mxfp4": (32.9, 109.5),
    "bitsandbytes": (32.9, 109.5),
    "rtn": (32.9, 109.5),
    "experts_int8": (131.4, 218.9),
    "int8_per_channel_weight_only": (131.4, 218.9),
    "nvfp4_per_token": (131.4, 109.5),
    "nvfp4_online": (131.4, 109.5),
}


@pytest.mark.parametrize("method", ONLINE)
def test_an_engine_quantises_a_checkpoint_in_16_bits_as_it_loads(method: str) -> None:
    for model, gib in zip((LLAMA, "Qwen/Qwen3-235B-A22B"), ONLINE[method], strict=True):
        found = told(f"vllm serve {model} -q {method}", 10, image="example.com/engine")
        assert f"puts {gib:g} GiB of weights on each GPU" in found[0]


# Method: the last release of vLLM that quantises by it, and the first that does not.
@pytest.mark.parametrize(
    ("method", "last", "after"),
    [("fp8", "v0.30.0", "v0.31.0"), ("bitsandbytes", "v0.27.1", "v0.28.0")],
)
def test_a_release_that_no_longer_quantises_by_a_method_is_not_checked(
    method: str, last: str, after: str
) -> None:
    command = f"vllm serve {LLAMA} -q {method}"
    assert told(command, 10, image=f"vllm/vllm-openai:{last}")[0].startswith("! ")
    because = f"vLLM {after[1:]} does not quantise by '{method}' while it loads"
    says = f"- was not checked, because {because}. [memory-weights-fit]"
    assert told(command, 10, image=f"vllm/vllm-openai:{after}") == [says]
    quantised = told(f"vllm serve {DEEPSEEK} -q fp8", 10, image=f"vllm/vllm-openai:{after}")
    assert quantised[0].startswith("! puts 627.1 GiB")


UNFIT = [
    (LLAMA, "awq"),
    (LLAMA, "modelopt_fp4"),
    (LLAMA, "compressed-tensors"),
    (LLAMA, "w8a8_int8"),
    (DEEPSEEK, "bitsandbytes"),
    # SGLang quantises the experts of an FP8 checkpoint once more.
    (DEEPSEEK, "modelopt_fp4"),
    (DEEPSEEK, "nvfp4_online"),
    ("nvidia/Llama-3.3-70B-Instruct-NVFP4", "fp8"),
    ("nvidia/Llama-3.3-70B-Instruct-NVFP4", "nvfp4"),
    ("Qwen/Qwen3-32B-AWQ", "int4"),
    ("openai/gpt-oss-120b", "mxfp8"),
]


@pytest.mark.parametrize(("model", "method"), UNFIT)
def test_a_method_of_another_form_is_not_checked(model: str, method: str) -> None:
    because = f"the table of models has no weights of {model} in '{method}'"
    says = f"- was not checked, because {because}. [memory-weights-fit]"
    assert told(f"{SGLANG} {model} --quantization {method}", 10) == [says]


UNREAD = {
    "vllm serve m/m": "'m/m' is not in the table of models",
    f"vllm serve {LLAMA} -q awq": "the table of models has no weights of "
    "meta-llama/Llama-3.3-70B-Instruct in 'awq'",
    f"vllm serve {LLAMA} --cpu-offload-gb 40": "a part of its weights stays in the memory of the "
    "host",
    f"vllm serve {LLAMA} --gpu-memory-utilization 90": "90 is not a share of a GPU's memory",
    "vllm serve mistralai/Mistral-Large-4-1T-A52B": "the table of models has no size of the "
    "weights of mistralai/Mistral-Large-4-1T-A52B",
}


@pytest.mark.parametrize("command", UNREAD)
def test_what_is_missing_beside_a_gpu_is_said_once(command: str) -> None:
    assert told(command) == [f"- was not checked, because {UNREAD[command]}. [memory-weights-fit]"]


UNCOUNTED = {
    "--kv-cache-dtype octave_k3v4": "the size of a KV cache of 'octave_k3v4' is not known",
    "--kv-cache-dtype int4": "the size of a KV cache of 'int4' is not known",
    "--kv-cache-dtype fp8_ds_mla": "'fp8_ds_mla' is not a KV cache type for "
    "meta-llama/Llama-3.3-70B-Instruct",
}


@pytest.mark.parametrize("flags", UNCOUNTED)
def test_a_cache_of_a_type_that_is_not_known_is_not_checked(flags: str) -> None:
    says = f"- was not checked, because {UNCOUNTED[flags]}. [memory-one-sequence]"
    assert told(f"vllm serve {LLAMA} -tp 4 {flags}") == [says]


@pytest.mark.parametrize(
    ("offload", "because"),
    [
        (True, "a part of its weights stays in the memory of the host"),
        (Unknown("GROUP is not in the manifest"), "GROUP is not in the manifest"),
    ],
)
def test_weights_in_the_memory_of_the_host_are_not_checked(
    offload: MaybeBool, because: str
) -> None:
    pod: dict[str, Any] = gpu_template(f"vllm serve {LLAMA} -tp 1")
    pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.memory": "81920"}
    assert checked(pod)[0].startswith("! ")
    found = checked(pod, host_offload=offload)
    assert found == [f"- was not checked, because {because}. [memory-weights-fit]"]


# Up to v0.19 vLLM takes 0.9 of a GPU, from v0.20 on 0.92.
@pytest.mark.parametrize("tag", ["v0.6.0", "v0.10.1", "v0.11.0", "v0.19.0", "v0.19.1"])
def test_an_old_version_takes_a_smaller_share(tag: str) -> None:
    found = told(f"vllm serve {LLAMA} -tp 2", 73, image=f"vllm/vllm-openai:{tag}")
    assert found[0].startswith("! ")
    assert "may use 65.7 GiB of it: 0.9 × 73 GiB" in found[0]


@pytest.mark.parametrize("tag", ["v0.20.0", "v0.20.2", "v0.33.0", "v1.0.0", "latest", "nightly"])
def test_a_new_version_takes_a_larger_share(tag: str) -> None:
    found = told(f"vllm serve {LLAMA} -tp 2", 73, image=f"vllm/vllm-openai:{tag}")
    assert found[0].startswith("? ")
    assert "(0.92 × 73 GiB" in found[0]


@pytest.mark.parametrize("share", ["0", "-0.5", "1.01"])
def test_a_share_that_is_none_is_not_checked(share: str) -> None:
    found = told(f"vllm serve {LLAMA} --gpu-memory-utilization {share}")
    because = f"{float(share):g} is not a share of a GPU's memory"
    assert found == [f"- was not checked, because {because}. [memory-weights-fit]"]


def test_without_a_gpu_nothing_is_said() -> None:
    assert checked(gpu_template(f"vllm serve {LLAMA}")) == []
    assert checked(gpu_template("vllm serve m/m")) == []


@pytest.mark.parametrize(
    ("length", "level"),
    [(20_000, Level.ADVISORY), (40_000, Level.ADVISORY), (131_072, Level.MANDATORY)],
)
def test_what_may_fit_is_advice_in_every_environment(length: int, level: Level) -> None:
    """4.9 GiB ± 2.1 GiB are left: 160 KiB × 40,000 tokens are 6.1 GiB, which may just fit."""
    flags = f"-tp 2 --gpu-memory-utilization 0.92 --max-model-len {length}"
    pod: dict[str, Any] = gpu_template(f"vllm serve {LLAMA} {flags}")
    pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    entry = read_pod(pod, "entry")
    engine = EngineFacts(path="e", name="a", pods=1, replicas=1, entry=entry, worker=None)
    found = run(memory_one_sequence, ServingFacts(path="", name="s", engines=(engine,)))
    (finding,) = environment_levels("prod").apply(found)
    assert finding.level is level


@pytest.mark.parametrize("command", [*REFUSED])
def test_the_named_sizes_fit_the_model(command: str) -> None:
    gib, _ = REFUSED[command]
    [line, *_] = [line for line in told(command, gib) if "memory-weights-fit" in line]
    named = re.findall(r"tensor (\d+) × pipeline (\d+)", line.partition(" or more (")[2])
    flags = {"sglang": ("--tp-size", "--pp-size"), "trtllm": ("--tp_size", "--pp_size")}
    tp, pp = next((flags[word] for word in flags if word in command), ("-tp", "-pp"))
    for tensor, pipeline in named:
        sizes = f"{command} {tp} {tensor} {pp} {pipeline}"
        pod: dict[str, Any] = gpu_template(sizes)
        pod["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.20.0"
        pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.memory": str(int(gib * 1024))}
        assert not [line for line in checked(pod) if line.endswith("[memory-weights-fit]")]
    assert named or "Split the model" not in line
