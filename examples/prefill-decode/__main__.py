"""Serve with SGLang: separate prefill and decode engines, and a router that uses both."""

from typing import Literal

import pulumi
from kthena_components import EngineArgs, GangPolicyArgs, ModelServing, RoleArgs

image = "lmsysorg/sglang:v0.5.3"
engine: EngineArgs = {"kind": "sglang", "image": image, "model": "deepseek-ai/DeepSeek-V3"}
engine["parallelism"] = {"tensor": 16}
pods: RoleArgs = {"name": "", "worker_replicas": 1, "resources": {"gpus_per_pod": 8}}


def half(role: Literal["prefill", "decode"]) -> EngineArgs:
    """Return the engine as one half of the pair: Mooncake carries the KV cache between them."""
    return {**engine, "kv_transfer": {"role": role, "connector": "mooncake"}}


prefill: RoleArgs = {**pods, "name": "prefill", "replicas": 2, "engine": half("prefill")}
decode: RoleArgs = {**pods, "name": "decode", "engine": half("decode")}
# The router has no GPU, so it is a template. It sends each request to both halves. Names are
# stable: pod 0 of engine 1 of the role prefill in group 0 is chat-0-prefill-1-0.
router = ["python3", "-m", "sglang_router.launch_router", "--pd-disaggregation"]
router += [f"--prefill=http://chat-0-prefill-{number}-0:8080" for number in range(2)]
router += ["--decode=http://chat-0-decode-0-0:8080", "--host=0.0.0.0", "--port=8080"]
front = {"spec": {"containers": [{"name": "router", "image": image, "command": router}]}}
roles: list[RoleArgs] = [prefill, decode, {"name": "router", "entry_template": front}]
# One prefill engine is enough to start. Decode and the router are required to answer requests.
gang: GangPolicyArgs = {"min_role_replicas": {"prefill": 1, "decode": 1, "router": 1}}
chat = ModelServing("chat", {"roles": roles, "gang_policy": gang, "expose": {"role": "router"}})
pulumi.export("endpoint", chat.endpoint)
