"""What a ModelInfer is called in Kthena, which MatrixInfer became.

Source: volcano-sh/kthena 712731d8 and 7e258748, which renamed it, and the commits named below.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming

RENAMED = {
    "ModelInfer": "ModelServing",
    "workload.matrixinfer.ai/v1alpha1": "workload.serving.volcano.sh/v1alpha1",
    "workload.volcano.sh/v1alpha1": "workload.serving.volcano.sh/v1alpha1",
    "InferGroupRollingUpdate": "ServingGroupRollingUpdate",
    "InferGroupRecreate": "ServingGroupRecreate",
}
"""Words of ModelInfer, and what Kthena 0.1 calls them."""
_ENDS = ("entry", "worker")
_OURS = (naming.NAME, naming.ROLE, naming.ENTRY)


def as_model_serving(body: Mapping[str, Any]) -> Any:
    """Turn a ModelInfer into the ModelServing of Kthena 0.1, undoing each stated difference."""
    body = json.loads(json.dumps(body))
    group = body["spec"]["template"]
    # networkTopology stood beside the gang only from 2608badd on.
    gang = group.pop("gangSchedule")
    if "networkTopology" in gang:
        group["networkTopology"] = gang.pop("networkTopology")
    # Both create a PodGroup only if one of the two is given; {} asks for all replicas.
    if gang:
        group["gangPolicy"] = gang
    for template in (role.get(f"{at}Template") for role in group["roles"] for at in _ENDS):
        if template is not None:
            # Before 06793936, the controller did not pass the scheduler to the pods.
            assert template["spec"].pop("schedulerName") == body["spec"]["schedulerName"]
            # Its own labels are modelinfer.matrixinfer.ai/* or modelinfer.volcano.sh/*.
            for label in _OURS:
                template["metadata"]["labels"].pop(label, None)
            if not template["metadata"]["labels"]:
                del template["metadata"]
    text = re.sub(
        r"modelinfer\.(matrixinfer\.ai|volcano\.sh)/", "modelserving.volcano.sh/", json.dumps(body)
    )
    for word, later in RENAMED.items():
        text = text.replace(f'"{word}"', f'"{later}"')
    return json.loads(text)
