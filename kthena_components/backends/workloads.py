"""Read Kubernetes' own workloads: Pod, Deployment, StatefulSet, ReplicaSet, DaemonSet, Job.

These may be ours or anyone's. One object shows one pod template; how many pods make one engine is
read from what the pods are told (GROUP_SIZE, --nnodes, ray_cluster_size), never guessed. What was
emitted natively, an object for the entry and one for the workers, is put together in groups.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts import (
    EngineFacts,
    NameFacts,
    PodFacts,
    ServingFacts,
    as_count,
    as_list,
    as_map,
    read_pods,
)
from kthena_components.core.findings import join_path
from kthena_components.core.known import MaybeInt, Unknown, is_late
