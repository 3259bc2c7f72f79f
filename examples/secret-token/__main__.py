"""Pass a token to the pods: pulumi config set --secret hf_token.

Pulumi generates the Secret's name, which is an Output: texts of a serving may be Outputs. A new
token creates a new Secret, and therefore new pods that read it.
"""

import pulumi
from kthena_components import ModelServing, RoleArgs
from pulumi_kubernetes.core.v1 import Secret

token = Secret("hf-token", string_data={"token": pulumi.Config().require_secret("hf_token")})
role: RoleArgs = {
    "name": "serve",
    "engine": {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
    },
    "hugging_face_token": {"name": token.metadata["name"], "key": "token"},
}
chat = ModelServing("chat", {"roles": [role], "expose": {"port": 80}})
pulumi.export("endpoint", chat.endpoint)
