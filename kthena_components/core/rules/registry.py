"""The list of rules over facts: CHECKS. A check is a pure function over facts.

Its docstring is its documentation, its name is its rule's name.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, checked_by
from kthena_components.core.rules.architecture_and_dtype_on_gpu import (
    architecture_in_release,
    architecture_on_gpu,
    dtype_on_gpu,
)
from kthena_components.core.rules.context_and_scheduler_sizes import (
    context_within_model,
    scheduler_sizes,
)
from kthena_components.core.rules.context_parallel_layout import context_parallel_layout
from kthena_components.core.rules.data_parallel_layout import data_parallel_layout
from kthena_components.core.rules.engine_and_library_variable_known import (
    engine_variable_known,
    engine_variable_number,
    engine_variable_value,
    library_variable_known,
)
from kthena_components.core.rules.engine_options_and_config_file import (
    engine_config_file,
    engine_option_keys,
    engine_option_known,
    engine_option_word,
)
from kthena_components.core.rules.executor_and_ray_over_pods import (
    executor_stated,
    pp_with_ray,
    ray_over_pods,
)
from kthena_components.core.rules.expert_balance import expert_balance
from kthena_components.core.rules.fp8_blocks_and_quantization_groups import (
    BLOCKS,
    GROUPS,
    fp8_block_multiple,
    quantization_groups,
)
from kthena_components.core.rules.gang_covers_engine_nodes_whole import (
    gang_covers_engine,
    nodes_whole,
)
from kthena_components.core.rules.gpu_requests_vendor_visible import (
    gpu_requests_equal_limits,
    image_gpu_vendor,
    one_gpu_vendor,
    visible_gpus,
)
from kthena_components.core.rules.headless import headless_copies, headless_workers
from kthena_components.core.rules.host_ip_per_pod_nixl_side_channel_host import (
    host_ip_per_pod,
    nixl_side_channel_host,
)
from kthena_components.core.rules.image_model_hf_token_config_map_key import (
    config_map_key_exists,
    engine_image,
    hf_token_from_secret,
    image_pinned,
    model_offline,
    model_stated,
)
from kthena_components.core.rules.kv_connector_and_halves import (
    kv_connector_known,
    kv_halves_alike,
    kv_halves_complete,
)
from kthena_components.core.rules.kv_halves_parallel import kv_halves_parallel
from kthena_components.core.rules.leader_master_address import leader_address, master_address
from kthena_components.core.rules.leader_pod_exists import leader_pod_exists
from kthena_components.core.rules.leader_worker_same import (
    leader_worker_same_gpus,
    leader_worker_same_parallelism,
)
from kthena_components.core.rules.memory_weights_fraction_offload import (
    memory_fraction_range,
    memory_one_sequence,
    memory_weights_fit,
    offload_within_memory,
)
from kthena_components.core.rules.name_fits import name_fits
from kthena_components.core.rules.network import host_network_names, network_interface
from kthena_components.core.rules.nnodes_equals_group_size_variables import (
    metadata_variables,
    nnodes_equals_group,
    ray_cluster_size_equals_group,
    size_variables,
)
from kthena_components.core.rules.options_agree_draft_pipeline_tensor import (
    draft_pipeline,
    draft_tensor,
    options_agree,
)
from kthena_components.core.rules.pod_ranks import pod_ranks
from kthena_components.core.rules.pods_joined_mpi_ranks import mpi_ranks, pods_joined
from kthena_components.core.rules.ports_distinct_leader_ports_agree import (
    disaggregated_ports,
    leader_ports_agree,
    ports_distinct,
)
from kthena_components.core.rules.probe_covers import probe_covers_loading, probe_covers_sleep
from kthena_components.core.rules.probe_port_probe_key import (
    probe_key,
    probe_port,
    routing_sidecar_port,
)
from kthena_components.core.rules.ray_image_gpus_start import (
    ray_in_image,
    ray_num_gpus,
    ray_script_in_image,
    ray_start_order,
)
from kthena_components.core.rules.sglang_layout import sglang_layout, sglang_options_fit
from kthena_components.core.rules.shm import shm_present, shm_size
from kthena_components.core.rules.start_order_init_container_ends import (
    container_outlives_server,
    init_container_ends,
    start_order,
)
from kthena_components.core.rules.support.fixes import placed
from kthena_components.core.rules.tp_heads_ffn_pp_layers_moe import (
    EXPERTS,
    FEED_FORWARD,
    HEADS,
    KV_HEADS,
    STAGES,
    ffn_divisible,
    moe_expert_shape,
    moe_ranks,
    pp_within_layers,
    tp_divides_heads,
    tp_divides_kv_heads,
)
from kthena_components.core.rules.world_size_equals_gpus import whole_gpus, world_size_equals_gpus

Check = Callable[[ServingFacts], Iterator[Finding]]

MODEL_RULES = frozenset({HEADS, KV_HEADS, STAGES, EXPERTS, FEED_FORWARD, BLOCKS, GROUPS})
"""The rules about the shapes of models."""
CHECKS: tuple[Check, ...] = (
    world_size_equals_gpus,
    engine_option_known,
    engine_option_keys,
    engine_option_word,
    engine_variable_known,
    engine_variable_number,
    engine_variable_value,
    library_variable_known,
    model_stated,
    model_offline,
    engine_config_file,
    nodes_whole,
    mpi_ranks,
    moe_ranks,
    visible_gpus,
    whole_gpus,
    one_gpu_vendor,
    image_gpu_vendor,
    init_container_ends,
    container_outlives_server,
    leader_worker_same_gpus,
    gpu_requests_equal_limits,
    ray_cluster_size_equals_group,
    ray_num_gpus,
    nnodes_equals_group,
    pod_ranks,
    master_address,
    size_variables,
    metadata_variables,
    leader_address,
    leader_pod_exists,
    leader_ports_agree,
    ports_distinct,
    disaggregated_ports,
    routing_sidecar_port,
    headless_workers,
    headless_copies,
    network_interface,
    nixl_side_channel_host,
    host_ip_per_pod,
    pods_joined,
    ray_start_order,
    host_network_names,
    probe_port,
    probe_key,
    probe_covers_sleep,
    probe_covers_loading,
    start_order,
    gang_covers_engine,
    tp_divides_heads,
    tp_divides_kv_heads,
    pp_within_layers,
    moe_expert_shape,
    ffn_divisible,
    fp8_block_multiple,
    quantization_groups,
    memory_weights_fit,
    memory_one_sequence,
    dtype_on_gpu,
    architecture_in_release,
    architecture_on_gpu,
    engine_image,
    executor_stated,
    ray_in_image,
    ray_script_in_image,
    ray_over_pods,
    pp_with_ray,
    data_parallel_layout,
    sglang_layout,
    sglang_options_fit,
    context_parallel_layout,
    expert_balance,
    draft_pipeline,
    draft_tensor,
    options_agree,
    kv_connector_known,
    kv_halves_complete,
    kv_halves_alike,
    kv_halves_parallel,
    context_within_model,
    scheduler_sizes,
    memory_fraction_range,
    leader_worker_same_parallelism,
    shm_present,
    shm_size,
    offload_within_memory,
    hf_token_from_secret,
    image_pinned,
    name_fits,
    config_map_key_exists,
)


def run_checks(facts: ServingFacts) -> list[Finding]:
    """Check the facts by every rule."""
    return [placed(finding) for finding in checked_by(CHECKS, facts)]
