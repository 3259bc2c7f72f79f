"""options-agree: options that vLLM and SGLang require, or exclude, together."""

from kthena_components.core.rules.options_agree_draft_pipeline_tensor import options_agree
from tests.support.for_each import for_each
from tests.support.startup import checked, levels

LINES = [
    ("vllm 0.6.0", "m --enable-auto-tool-choice", True),
    ("vllm 0.33.0", "m --no-enable-auto-tool-choice", False),
    ("vllm 0.33.0", "m --enable-auto-tool-choice --tool-call-parser hermes", False),
    ("vllm 0.33.0", "m --enable-auto-tool-choice $MORE", False),
    ("vllm 0.33.0", "m --enable-auto-tool-choice --tool-call-parser.a b", False),
    ("vllm 0.8.5", "m --lora-modules a=/a", False),
    ("vllm 0.9.0", "m --lora-modules a=/a", True),
    ("vllm 0.33.0", "m --lora-modules a=/a --enable-lora", False),
    ("vllm 0.33.0", "m --lora-modules a=/a --no-enable-lora", True),
    ("vllm 0.20.0", "m --numa-bind-nodes 0 1", True),
    ("vllm 0.20.0", "m --numa-bind --numa-bind-nodes 0 1", False),
    ("vllm 0.33.0", "m --numa-bind-cpus 0-3", True),
    ("vllm 0.33.0", "m --enable-lora --max-cpu-loras 1", False),
    ("vllm 0.33.0", "m --max-loras 4 --max-cpu-loras 1", False),
    ("vllm 0.33.0", "m --enable-lora --max-loras 2 --max-cpu-loras 1", True),
    ("vllm 0.17.1", "m --offload-group-size 2 --offload-num-in-group 3", False),
    ("vllm 0.18.0", "m --offload-group-size 2 --offload-num-in-group 3", True),
    ("vllm 0.18.0", "m --offload-group-size 3 --offload-num-in-group 3", False),
    ("vllm 0.33.0", "m -dp 2 -dpl 1 --headless --api-server-count 2", True),
    ("vllm 0.33.0", "m -dp 2 --api-server-count 2", False),
    ("sglang 0.4.10.post2", "m --enable-hierarchical-cache --disable-radix-cache", False),
    ("sglang 0.5.1", "m --enable-hierarchical-cache --disable-radix-cache", True),
    ("sglang 0.5.23", "m --enable-hierarchical-cache", False),
    ("sglang 0.4.9.post6", "m --enable-lora", False),
    ("sglang 0.4.10.post2", "m --enable-lora", True),
    ("sglang 0.5.23", "m --enable-lora --lora-paths a=/a", False),
    ("sglang 0.5.23", "m --enable-lora --max-lora-rank 16", True),
    ("sglang 0.5.23", "m --enable-lora --max-lora-rank 16 --lora-target-modules all", False),
    ("sglang 0.5.5", "m --served-model-name a:b", False),
    ("sglang 0.5.5.post1", "m --served-model-name a:b", True),
    ("sglang 0.5.23", "m --served-model-name s3://a/b", False),
    ("sglang 0.5.6", "m --enable-two-batch-overlap", False),
    ("sglang 0.5.7", "m --enable-two-batch-overlap", True),
    ("sglang 0.5.23", "m --tp-size 8 --moe-a2a-backend deepep --enable-two-batch-overlap", False),
    ("sglang 0.5.23", "m --tp-size 8 --attn-dp-size 8 --enable-two-batch-overlap", False),
]


@for_each(("release", "line", "refused"), LINES)
def test_what_a_release_requires_together_is_required(
    release: str, line: str, *, refused: bool
) -> None:
    found = levels(options_agree, release, line)
    assert found == ["mandatory"] * refused


def test_a_release_that_the_image_does_not_state_is_told() -> None:
    (finding,) = checked(options_agree, "vllm", "m --enable-auto-tool-choice")
    assert finding.level.value == "advisory"
    assert "checked against vLLM" in str(finding)
