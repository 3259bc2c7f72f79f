"""What an LLMInferenceService cannot do, and in which words that is refused."""

import pytest

from tests.support.for_each import for_each
from tests.support.specs import DATA_PARALLEL, Args, changed, gpu_template
from tests.systems.kserve.samples import FIRST, HEAD, LLM, SPLIT, UPDATE, WORKER, said

TEMPLATES = changed(
    LLM,
    {
        "backend_options.storage_uri": "pvc://llama/hf",
        "roles[0]": {
            "name": "decode",
            "worker_replicas": 2,
            "entry_template": gpu_template("serve-it"),
            "worker_template": gpu_template("join-it"),
        },
    },
)
REFUSED: dict[str, tuple[Args, Args, str]] = {
    "two-roles-without-prefill": (
        SPLIT,
        {"roles[0].name": "context", "expose": {"role": "decode"}},
        (
            "roles: are context, decode, but an LLMInferenceService has one role, "
            "and prefill beside it. Name one of two prefill, or write backend: "
            "native, kthena or lws. [backend-loss]"
        ),
    ),
    "groups-of-two-roles": (
        SPLIT,
        {"replicas": 2},
        (
            "replicas: is 2, but an LLMInferenceService is one group of its 2 roles. Write 1 and "
            "multiply roles[].replicas by 2, or write backend: native or kthena. [backend-loss]"
        ),
    ),
    "no-recovery": (
        LLM,
        {"recovery_policy": "None"},
        (
            "recovery_policy: is None, but KServe always recreates the engine "
            "whose pod failed. Write RoleRecreate, or write backend: native, "
            "kthena or lws. [backend-loss]"
        ),
    ),
    "recovery-of-a-group": (
        SPLIT,
        {"recovery_policy": "ServingGroupRecreate"},
        (
            "recovery_policy: is ServingGroupRecreate, but KServe always recreates "
            "the engine whose pod failed. Write RoleRecreate, or write backend: "
            "kthena. [backend-loss]"
        ),
    ),
    "gang-of-engines": (
        SPLIT,
        {"gang_policy": {"min_role_replicas": {"prefill": 1, "decode": 1}}},
        (
            "gang_policy.min_role_replicas: requests 2 engines together, but each engine is a "
            "gang of its own. Remove gang_policy, or write backend: native or kthena. "
            "[backend-loss]"
        ),
    ),
    "topology": (
        LLM,
        {"network_topology": {"role_policy": {"highest_tier_allowed": 1}}},
        (
            "network_topology.role_policy: is given, but pods of KServe have no PodGroup with a "
            "network topology. Remove it, or write backend: native or kthena. [backend-loss]"
        ),
    ),
    "queue": (
        LLM,
        {"queue": "research"},
        (
            "queue: is research, but pods of KServe have no PodGroup with a queue. Remove it, or "
            "write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "surge": (
        LLM,
        {UPDATE: {"max_surge": 1}},
        (
            "rollout_strategy.rolling_update_configuration.max_surge: is 1, but KServe updates "
            "one engine at a time, with none beside. Remove it, or write backend: lws. "
            "[backend-loss]"
        ),
    ),
    "two-at-a-time": (
        LLM,
        {UPDATE: {"max_unavailable": 2}},
        (
            "rollout_strategy.rolling_update_configuration.max_unavailable: gives "
            "2 engines of role 'decode', but KServe updates one at a time. Remove "
            "it, or write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "partition": (
        LLM,
        {UPDATE: {"partition": 1}},
        (
            "rollout_strategy.rolling_update_configuration.partition: is 1, but KServe updates "
            "all pods of a role. Remove it, or write backend: native, kthena or lws. "
            "[backend-loss]"
        ),
    ),
    "single-pods": (
        LLM,
        {"roles[0].worker_replicas": 0, "roles[0].engine.parallelism.pipeline": 1},
        (
            "roles[0].worker_replicas: is 0, but KServe merges an engine of one pod with a "
            "preset, which has probes over TLS and a user that is not root. Write "
            "backend_options.kind: InferenceService, or write backend: "
            "native, kthena or lws. [backend-loss]"
        ),
    ),
    "data-parallel": (
        changed(DATA_PARALLEL, {"backend": "kserve", "backend_options": LLM["backend_options"]}),
        {},
        (
            "roles[0].engine.parallelism: starts data 8, for which KServe takes 4 on each of 2 "
            "pods, and merges the pods with a preset that has probes over TLS and a user that is "
            "not root. Write backend_options.replaces_presets: true, which replaces that preset in "
            "this namespace, or write backend: "
            "native, kthena or lws. [backend-loss]"
        ),
    ),
    "ranks-that-kserve-leaves-out": (
        TEMPLATES,
        {
            f"{HEAD}.{FIRST}.command[2]": "vllm serve m --data-parallel-size 16",
            "backend_options.replaces_presets": True,
        },
        (
            "roles[0].entry_template: starts data 16, for which KServe takes 5 on "
            "each of 3 pods, and leaves out 1 of 16. Write data 15, or write "
            "backend: native, kthena or lws. [backend-loss]\n"
            "roles[0].entry_template.spec.containers[0].command: engine 'decode' "
            "starts tensor 1 × pipeline 1 × data 16 = 16 ranks, but its 3 pods × 8 "
            "GPUs hold 24. Set data to 24, or give the engine 2 pods. "
            "[world-size-equals-gpus]"
        ),
    ),
    "fewer-copies-than-pods": (
        TEMPLATES,
        {
            f"{HEAD}.{FIRST}.command[2]": "vllm serve m -tp 12 --data-parallel-size 2",
            "backend_options.replaces_presets": True,
        },
        (
            "roles[0].entry_template: starts data 2, for which KServe takes 0 on "
            "each of 3 pods, and leaves out 2 of 2. Write data 3, or write "
            "backend: native, kthena or lws. [backend-loss]\n"
            "roles[0].entry_template.spec.containers[0].command: engine 'decode' "
            "has tensor 12 on pods of 8 GPUs, so one tensor group would fill a "
            "part of a pod, and a pod would hold parts of two groups. Set tensor "
            "to 8 or 16. [nodes-whole]"
        ),
    ),
    "copies-in-stages": (
        TEMPLATES,
        {
            f"{HEAD}.{FIRST}.command[2]": "vllm serve m -tp 4 -pp 2 --data-parallel-size 3",
            "backend_options.replaces_presets": True,
        },
        (
            "roles[0].entry_template: starts data 3 and pipeline 2, but KServe "
            "accepts only one of them. Divide each copy by tensor alone, or write "
            "backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "tensor-over-two-pods": (
        LLM,
        {"roles[0].engine.parallelism": {"tensor": 16}},
        (
            "roles[0].engine.parallelism: starts pipeline 1, for which KServe "
            "creates 1 of 2 pods. Write pipeline 2, or write backend: native, "
            "kthena or lws. [backend-loss]"
        ),
    ),
    "no-model": (
        LLM,
        {"roles[0].engine.model": "/mnt/models"},
        (
            "backend_options.storage_uri: is missing, and the command names no model of a hub. "
            "Write pvc://claim/path or oci://image. [backend-options]"
        ),
    ),
    "braces": (
        TEMPLATES,
        {f"{WORKER}.{FIRST}.command[2]": "join-it '{{ a }}'"},
        (
            "roles[0].entry_template: contains '{{', which KServe expands as a "
            "template of its own. Put the text into a ConfigMap and mount it, or "
            "write backend: native, kthena or lws. [backend-loss]"
        ),
    ),
    "label": (
        TEMPLATES,
        {
            f"{HEAD}.metadata": {"labels": {"app.kubernetes.io/name": "a"}},
            f"{WORKER}.metadata": {"labels": {"app.kubernetes.io/name": "a"}},
        },
        (
            "roles[0].entry_template.metadata.labels: has the label app.kubernetes.io/name, by "
            "which KServe finds pods. Rename it. [backend-loss]"
        ),
    ),
    "different-labels": (
        TEMPLATES,
        {f"{HEAD}.metadata": {"labels": {"team": "chat"}}},
        (
            "roles[0].entry_template.metadata: differs from worker_template, but KServe "
            "gives leaders and workers the same labels and annotations. Write the same in both, "
            "or write backend: "
            "native, kthena or lws. [backend-loss]"
        ),
    ),
    "different-accounts": (
        TEMPLATES,
        {f"{HEAD}.spec.serviceAccountName": "chat"},
        (
            "roles[0].entry_template.spec.serviceAccountName: differs from "
            "worker_template, but KServe gives leaders and workers the same. Write "
            "the same in both, or write backend: native, kthena or lws. "
            "[backend-loss]"
        ),
    ),
}


@for_each("case", REFUSED)
def test_what_an_llm_service_cannot_do_is_refused_with_a_remedy(case: str) -> None:
    args, changes, message = REFUSED[case]
    assert said(args, changes) == message


TAKEN: dict[str, tuple[Args, Args]] = {
    "one engine at a time": (LLM, {UPDATE: {"max_unavailable": 1}}),
    "recovery of an engine": (SPLIT, {"recovery_policy": "RoleRecreate"}),
    "recovery of a group of one": (LLM, {"recovery_policy": "ServingGroupRecreate"}),
    "a gang of one engine": (LLM, {"gang_policy": {"min_role_replicas": {"decode": 1}}}),
    "copies of the model": (
        changed(DATA_PARALLEL, {"backend": "kserve", "backend_options": LLM["backend_options"]}),
        {"backend_options.replaces_presets": True},
    ),
    "ray without numbers": (
        LLM,
        {
            "roles[0].worker_replicas": 3,
            "roles[0].engine.parallelism": {"tensor": 8, "pipeline": 4},
        },
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_an_llm_service_can_do_is_taken(case: str) -> None:
    args, changes = TAKEN[case]
    assert said(args, changes) == ""


@pytest.mark.parametrize(
    ("args", "engines", "longest"), [(LLM, 1, 40), (LLM, 11, 39), (SPLIT, 1, 32)]
)
def test_a_name_is_as_long_as_the_stateful_sets_of_its_engines_may_be(
    args: Args, engines: int, longest: int
) -> None:
    """KServe's LeaderWorkerSets are NAME-kserve-mn and NAME-kserve-mn-prefill."""
    for length in range(30, 45):
        changes = {"name": "a" * length, "roles[0].replicas": engines}
        found = [text for text in said(args, changes).splitlines() if "name-fits" in text]
        assert bool(found) is (length > longest), (length, found)
        assert all("StatefulSet" in text or "worker pod" in text for text in found), found
