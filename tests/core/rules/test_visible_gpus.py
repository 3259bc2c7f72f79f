"""Which GPUs an engine sees: values of CUDA_VISIBLE_DEVICES, and the GPUs that SGLang numbers."""

import pytest

from kthena_components.core.engines import CommandFacts
from kthena_components.core.rules.gpu_requests_vendor_visible import _last, seen_by


@pytest.mark.parametrize(
    ("text", "held", "count"),
    [
        # What torch 2.x computes: _parse_visible_devices, then _device_count_nvml.
        ("0,1,2,3", 8, 4),
        (" 0 , 1", 2, 2),
        ("1gpu2,2ampere", 4, 2),
        ("0,1,x,3", 4, 2),
        ("0,-1,1", 4, 1),
        ("+1,0", 2, 2),
        ("0,0", 2, 0),
        ("3,2,9,1", 4, 2),
        ("", 4, 0),
        ("all", 4, 0),
        ("-1", 4, 0),
        ("GPU-a,GPU-b,1", 4, 2),
        ("GPU-a,GPU-a", 4, 0),
        ("MIG-a,GPU-b", 4, 1),
        ("0,00", 2, 0),
        ("99999999999999999999", 4, 0),
    ],
)
def test_cuda_shows_the_gpus_up_to_the_first_that_is_none(text: str, held: int, count: int) -> None:
    assert seen_by(text, held).count == count


@pytest.mark.parametrize(
    ("sizes", "first", "step", "last"),
    [
        # Tensor, pipeline, nodes, data, and the largest gpu_id of SGLang 0.5.1 and 0.5.9:
        # sglang/srt/managers/data_parallel_controller.py launch_tensor_parallel_group.
        ((8, 1, 1, 1), 0, 1, 7),
        ((4, 1, 1, 1), 4, 1, 7),
        ((8, 1, 1, 1), 4, 1, 11),
        ((4, 1, 1, 1), 0, 2, 6),
        ((4, 2, 1, 1), 0, 1, 7),
        ((16, 1, 2, 1), 0, 1, 7),
        ((8, 2, 2, 1), 1, 1, 8),
        ((2, 1, 1, 2), 0, 2, 6),
        ((8, 4, 2, 1), 0, 1, 15),
    ],
)
def test_sglang_numbers_its_gpus_in_a_pod(
    sizes: tuple[int, int, int, int], first: int, step: int, last: int
) -> None:
    tensor, pipeline, nodes, data = sizes
    command = CommandFacts(
        engine="sglang", tensor=tensor, pipeline=pipeline, nnodes=nodes, data=data
    )
    assert _last(command, first, step) == last
