"""NVIDIA Dynamo: graphs of components, and single ones."""

from kthena_components.systems.dynamo.convert import sketch
from kthena_components.systems.dynamo.facts import demand, facts, kept, pods
from kthena_components.systems.dynamo.rules import (
    dynamo_gpu_memory,
    dynamo_launch,
    dynamo_name_length,
    dynamo_placement,
    dynamo_restart,
    dynamo_shape,
)
from kthena_components.systems.dynamo.system_and_frontend_port import (
    dynamo_frontend_port,
    dynamo_system_port,
    listens,
)
from kthena_components.systems.dynamo.view import COMPONENT, GRAPH, read_graph
from kthena_components.systems.system import PRODUCTION, Kind, System

_WITHOUT = {
    "templates": "its operator completes them, so fields that Kubernetes requires may be missing",
    "restarts": "Grove, a LeaderWorkerSet or a Deployment restarts the pods, each in its own way",
    PRODUCTION: "its operator completes them with probes and labels",
}

SYSTEM = System(
    name="dynamo",
    title="NVIDIA Dynamo",
    kinds=tuple(
        Kind(
            group=group,
            name=name,
            view=read_graph,
            facts=facts,
            pods=pods,
            listens=listens,
            sketch=sketch,
            demand=demand,
            rules=(
                dynamo_shape,
                dynamo_placement,
                dynamo_restart,
                dynamo_gpu_memory,
                dynamo_launch,
                dynamo_name_length,
                dynamo_system_port,
                dynamo_frontend_port,
            ),
            kept=kept,
            # deploy/operator/api/v1alpha1: only a DynamoGraphDeploymentScalingAdapter has one.
            unscalable="has no scale subresource",
            number_in="replicas of each component",
            without=_WITHOUT,
        )
        for group, name in (COMPONENT, GRAPH)
    ),
)
