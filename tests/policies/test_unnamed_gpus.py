"""The policies say once of a stack that nothing names its GPU; the stack's config may name it."""

from collections.abc import Mapping
from typing import Any

from tests.policies.objects import DEPLOYMENT, Args, container, workload
from tests.policies.process import started

NOT_CHECKED = "was not checked, because nothing names the GPU. Name it by "
LARGE = "deepseek-ai/DeepSeek-V3"
SMALL = "Qwen/Qwen3-32B"
SHORT = ["--max-model-len", "1024"]


def asked(
    models: Mapping[str, str],
    gpus_of: Mapping[str, str] | None = None,
    of_stack: str = "",
    key: str = "kthena-components:gpu",
    is_secret: bool = False,
    **fields: Any,
) -> list[str]:
    """Give what a new pack says of Deployments with one GPU per pod, by name and model.

    Args:
        models: The model of each Deployment.
        gpus_of: The GPU in the config of the pack, by policy.
        of_stack: The GPU in the config of the stack.
        key: The key of this GPU.
        is_secret: Whether it is a secret.
        fields: Other settings of serving-rules.
    """
    stack: dict[str, tuple[str, Args]] = {}
    for name, model in models.items():
        body = workload(container(gpus=1, args=["--model", model, *SHORT]), name=name)
        stack[f"urn:{name}"] = DEPLOYMENT, {**body, "apiVersion": "apps/v1", "kind": "Deployment"}
    config = {
        name: {"enforcementLevel": "mandatory"} for name in ("serving-rules", "serving-groups")
    }
    config["serving-rules"].update(fields)
    for name, gpu in (gpus_of or {}).items():
        config[name]["gpu"] = gpu
    with started(gpu=of_stack, key=key) as pack:
        if is_secret:
            pack.configure_stack({key: of_stack}, [key])
        pack.configure(config)
        lines = [line for kind, body in stack.values() for line in pack.analyze(kind, body)]
        return [line for line in lines + pack.analyze_stack(stack) if "[memory-" in line]


def test_it_is_said_once_of_a_stack_with_the_ways_to_name_it() -> None:
    (line,) = asked({"a": SMALL, "b": SMALL})
    assert line.startswith(
        f"advisory serving-groups-advice : memory of Deployment default/a and 1 other {NOT_CHECKED}"
    )
    for way in ("resources.gpu", "node selector", "kthena-components:gpu", '"gpu": "h200"'):
        assert way in line


def test_a_gpu_in_the_config_of_the_pack_or_the_stack_leaves_nothing_to_say() -> None:
    assert asked({"a": SMALL}, {"serving-rules": "h200"}) == []
    assert asked({"a": SMALL}, of_stack="h200") == []
    assert asked({"a": SMALL}, of_stack="h200", key="chat:gpu") == []
    assert len(asked({"a": SMALL}, of_stack="h200", key="other:gpu")) == 1
    assert len(asked({"a": SMALL}, of_stack="h20000")) == 1


def test_a_disabled_rule_says_nothing() -> None:
    assert asked({"a": SMALL}, levels={"memory-weights-fit": "disabled"}) == []


def test_the_gpu_of_the_stack_is_compared_with() -> None:
    (line,) = asked({"a": SMALL}, of_stack="l4")
    assert line.startswith("mandatory serving-rules ")
    assert "may use 20.7 GiB of it" in line


def test_a_gpu_of_the_stack_weakens_nothing() -> None:
    """The pack's own config takes precedence, and a GPU of another vendor hides nothing."""
    (line,) = asked({"a": SMALL}, {"serving-rules": "l4"}, of_stack="b300")
    assert "may use 20.7 GiB of it" in line
    for gpu in ("", "b300", "mi300x", "no-gpu"):
        (line,) = asked({"a": LARGE}, of_stack=gpu)
        assert line.startswith("mandatory serving-rules "), gpu


def test_a_secret_of_the_stack_is_not_read() -> None:
    assert len(asked({"a": SMALL}, of_stack="h200", is_secret=True)) == 1
