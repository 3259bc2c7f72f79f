"""The files of a checkpoint that a loader of vLLM keeps in a GPU's memory. Sizes in GiB.

fastsafetensors reads whole files into it, and the next one while the weights of one are copied:
fastsafetensors_weights_iterator in vllm/model_executor/model_loader/weight_utils.py, and
PipelineParallel in fastsafetensors/parallel_loader.py, whose queue has no place for more by
default. PyTorch's allocator keeps them if weights that are packed again lie in them afterwards
(vllm#57440; c10/cuda/CUDACachingAllocator.cpp). vLLM counts what it keeps since 0.27, where
`total_consumed` in vllm/utils/mem_utils.py is what is free before less what is free after.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.memory.sizes import GIB
from kthena_components.core.values.images import Version

_COUNTED_SINCE = (0, 27)
"""The first release that counts what its allocator keeps; 0.26 does not."""
_FILES, _OF_A_FILE = 2, 10 * 10**9 / GIB
"""Files at once, and the most of a file that ModelOpt writes by default: max_shard_size in
modelopt/torch/export/unified_export_hf.py of 0.47. Files of others may be larger."""


def staged_files(options: Mapping[str, Any], weights: float, release: Version | None) -> float:
    """Return what files keep at most, beside the weights; it may be nothing.

    Args:
        options: The options of the command line.
        weights: GiB of weights on a GPU, which its files have together.
        release: The release of vLLM. None: the newest.
    """
    counted = release is None or release >= _COUNTED_SINCE
    loads = options.get("--load-format") == "fastsafetensors"
    return min(weights, _FILES * _OF_A_FILE) if counted and loads else 0.0
