"""Ray's own number of GPUs: ray_num_gpus, over a script that starts Ray twice."""

import pytest

from kthena_components.core.engines import read_command
from kthena_components.core.values.unknown import Unknown


@pytest.mark.parametrize(
    ("script", "gpus"),
    [
        ("ray start --head", None),
        ("ray start --head --num-gpus 8", 8),
        ("ray start --head --num-gpus=0", 0),
        ("ray start --head --num-gpus=8; ray start --address a --num-gpus=8", 8),
        ("ray symmetric-run --min-nodes 2 --num-gpus 4 -- vllm serve m -tp 8", 4),
        ("ray symmetric-run --min-nodes 2 -- vllm serve --num-gpus 4", None),
    ],
)
def test_ray_counts_what_its_commands_state(script: str, gpus: int | None) -> None:
    facts = read_command(["sh", "-c", script], {})
    assert facts is not None
    assert facts.ray_gpus == gpus


@pytest.mark.parametrize(
    "script",
    [
        "ray start --head --num-gpus=8; ray start --address a --num-gpus=4",
        "ray start --head --num-gpus=$COUNT",
        "ray start --head --num-gpus=many",
    ],
)
def test_ray_may_count_what_is_not_known(script: str) -> None:
    facts = read_command(["sh", "-c", script], {})
    assert facts is not None
    assert isinstance(facts.ray_gpus, Unknown)
