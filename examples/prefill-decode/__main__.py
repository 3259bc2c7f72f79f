"""Serve with SGLang, prefill apart from decode, and a router that hands each request to both."""

import pulumi

from kthena_components import ModelServing

IMAGE = "lmsysorg/sglang:v0.5.3"
MODEL = "Qwen/Qwen3-235B-A22B-FP8"


def role(name: str, engines: int, workers: int) -> dict[str, object]:
    engine = {
        "kind": "sglang",
        "image": IMAGE,
        "model": MODEL,
        "parallelism": {"tensor": 8 * (1 + workers)},
        "extra_args": ["--disaggregation-mode", name],
    }
    return {
        "name": name,
        "replicas": engines,
        "worker_replicas": workers,
        "engine": engine,
        "resources": {"gpus_per_pod": 8, "shm": "32Gi"},
    }


# Names are a promise: pod 0 of engine 0 of role prefill in group 0 is chat-0-prefill-0-0.
router = ["python3", "-m", "sglang_router.launch_router", "--pd-disaggregation", "--port", "8080"]
router += [
    "--prefill",
    "http://chat-0-prefill-0-0:8080",
    "--decode",
    "http://chat-0-decode-0-0:8080",
]
template = {"spec": {"containers": [{"name": "router", "image": IMAGE, "command": router}]}}
chat = ModelServing("chat", {
    "roles": [role("prefill", 2, 0), role("decode", 1, 1), {"name": "router", "entry_template": template}],
    # One prefill engine is enough to start; without decode or router nothing could answer.
    "gang_policy": {"min_role_replicas": {"prefill": 1, "decode": 1, "router": 1}},
    "expose": {"role": "router"},
})  # fmt: skip
pulumi.export("endpoint", chat.endpoint)
