"""Deploy an existing ModelServing manifest. Its pod templates stay as they are.

The package checks the manifest before it applies anything: change a number in it, such as
--pipeline-parallel-size, and the preview reports what no longer matches.
"""

from pathlib import Path

import pulumi
import yaml
from kthena_components import ModelServing, RoleArgs

manifest = yaml.safe_load(Path(__file__).with_name("llama-multinode.yaml").read_text())
spec = manifest["spec"]
roles: list[RoleArgs] = [
    {
        "name": role["name"],
        "replicas": role["replicas"],
        "worker_replicas": role["workerReplicas"],
        "entry_template": role["entryTemplate"],
        "worker_template": role["workerTemplate"],
    }
    for role in spec["template"]["roles"]
]
gang = spec["template"]["gangPolicy"]["minRoleReplicas"]
llama = ModelServing(
    manifest["metadata"]["name"],
    {"backend": "kthena", "roles": roles, "gang_policy": {"min_role_replicas": gang}},
)
pulumi.export("shape", llama.shape)
