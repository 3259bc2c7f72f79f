"""Deploy a ModelServing manifest that exists already: its pod templates pass through untouched.

What the package adds is the check before anything is applied: change a number in the manifest,
such as --pipeline-parallel-size, and the preview says what no longer fits.
"""

from pathlib import Path

import pulumi
import yaml

from kthena_components import ModelServing

manifest = yaml.safe_load(Path(__file__).with_name("llama-multinode.yaml").read_text())
template = manifest["spec"]["template"]
roles = [
    {
        "name": role["name"],
        "replicas": role["replicas"],
        "worker_replicas": role["workerReplicas"],
        "entry_template": role["entryTemplate"],
        "worker_template": role["workerTemplate"],
    }
    for role in template["roles"]
]
gang = {"min_role_replicas": template["gangPolicy"]["minRoleReplicas"]}
args = {"backend": "kthena", "roles": roles, "gang_policy": gang, "expose": {"port": 80}}
llama = ModelServing(
    manifest["metadata"]["name"], {**args, "replicas": manifest["spec"]["replicas"]}
)
pulumi.export("shape", llama.shape)
