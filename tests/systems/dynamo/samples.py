"""Right manifests of both kinds and both versions."""

from tests.rules.cases import documents
from tests.support.groups import (
    DYNAMO,
    DYNAMO_BETA,
    DYNAMO_ONE,
    DYNAMO_RICH,
    PIPELINE,
    TENSOR,
    component,
)
from tests.support.peers import Manifest

ONE_BETA: Manifest = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoComponentDeployment",
    "metadata": {"name": "decode"},
    "spec": component("decode", "8", "dynamo.vllm", TENSOR, "8", PIPELINE, "2", replicas=3),
}
BASES = [documents(name)[0] for name in ("dynamo", "dynamo-beta", "dynamo-component")]
SAMPLES = (DYNAMO, DYNAMO_RICH, DYNAMO_BETA, DYNAMO_ONE, ONE_BETA, *BASES)
