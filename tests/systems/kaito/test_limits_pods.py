"""What KAITO cannot do with pods and engines, and in which words that is refused."""

from typing import Any

from kthena_components.core.values.unknown import UNKNOWN_WORD
from tests.support.for_each import for_each
from tests.support.refusals import assert_refused
from tests.support.specs import VLLM, Args, template
from tests.systems.kaito.servings import ENGINE, PRESET

ONCE = "but KAITO writes each flag once, with one value. Remove it, or write backend: native"
REFUSED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "scheduler": (
        PRESET,
        {"scheduler_name": "volcano"},
        (
            "scheduler_name: is volcano, but the pods of a preset have no schedulerName. Write "
            "scheduler_name: default-scheduler, or remove backend_options.preset. [backend-loss]"
        ),
    ),
    "template": (
        PRESET,
        {"roles": [{"name": "a", "entry_template": template()}]},
        (
            "roles[0].entry_template: is given, but KAITO writes the pods of a preset. Write an "
            "engine "
            "instead, or remove backend_options.preset. [backend-loss]"
        ),
    ),
    "sglang": (
        PRESET,
        {f"{ENGINE}.kind": "sglang"},
        (
            f"{ENGINE}.kind: is sglang, but KAITO runs presets with vLLM. Write vllm, or remove "
            "backend_options.preset. [backend-loss]"
        ),
    ),
    "image": (
        PRESET,
        {f"{ENGINE}.image": VLLM},
        (
            f"{ENGINE}.image: is '{VLLM}', but KAITO 0.11 runs presets with its own image, "
            "kaito-base:0.4.2. Write mcr.microsoft.com/aks/kaito/kaito-base:0.4.2. [backend-loss]"
        ),
    ),
    "kv-transfer": (
        PRESET,
        {f"{ENGINE}.kv_transfer": {"role": "prefill", "connector": "nixl"}},
        (
            f"{ENGINE}.kv_transfer: is given, but the pods of a preset have no variables of their "
            "own. Remove it, or remove backend_options.preset. [backend-loss]"
        ),
    ),
    "port": (
        PRESET,
        {f"{ENGINE}.port": 8080},
        f"{ENGINE}.port: is 8080, but KAITO's pods and Services use 5000. Write 5000.",
    ),
    "launcher": (
        PRESET,
        {f"{ENGINE}.launcher": "native"},
        (
            f"{ENGINE}.launcher: is native, but KAITO connects the pods of an engine with Ray. "
            "Write "
            "ray, or remove it. [backend-loss]"
        ),
    ),
    "config-of-the-model": (
        PRESET,
        {f"{ENGINE}.hf_config": {"num_attention_heads": 128, "num_hidden_layers": 126}},
        f"{ENGINE}.hf_config: is given, but KAITO reads the model's config from Hugging Face.",
    ),
    "experts": (
        PRESET,
        {f"{ENGINE}.parallelism.expert": True},
        (
            f"{ENGINE}.parallelism.expert: is true, but inference_config.yaml has no switches "
            "such as "
            "--enable-expert-parallel. Remove it, or write backend: native, kthena or lws."
        ),
    ),
    "switch": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--enable-prefix-caching"]},
        (
            f"{ENGINE}.extra_args: has the switch '--enable-prefix-caching', which has no value, "
            f"{ONCE}"
        ),
    ),
    "flag-twice": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--max_num_seqs=1", "--max-num-seqs", "2"]},
        f"{ENGINE}.extra_args: has '--max-num-seqs' twice, {ONCE}",
    ),
    "several-values": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--served-model-name", "a", "b"]},
        f"{ENGINE}.extra_args: has '--served-model-name' with 2 values, {ONCE}",
    ),
    "short-flag": (
        PRESET,
        {f"{ENGINE}.extra_args": ["-O3"]},
        f"{ENGINE}.extra_args: has '-O3', which is not a flag of the form --name, {ONCE}",
    ),
    "flag-of-another-release": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--swap-space=4"]},
        (
            f"{ENGINE}.extra_args: does not fit the vLLM of KAITO 0.11: vLLM 0.22.1 has no option "
            "'--swap-space'"
        ),
    ),
    "no-flag": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--", "x"]},
        f"{ENGINE}.extra_args: has '--', which is not a flag of the form --name, {ONCE}",
    ),
    "unknown-flag": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--seed", UNKNOWN_WORD]},
        f"{ENGINE}.extra_args: is not known while the plan is built, but may decide the nodes.",
    ),
    "unknown-image": (
        PRESET,
        {f"{ENGINE}.image": UNKNOWN_WORD},
        f"{ENGINE}.image: is not known yet, but KAITO 0.11 runs presets with its own image",
    ),
    "length-with-a-unit": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--max-model-len", "8k"]},
        (
            f"{ENGINE}.extra_args: has max-model-len '8k', but KAITO accepts only a whole number "
            "there. Write the number of tokens, at most 131072. [kaito-config]"
        ),
    ),
    "length-of-more-than-the-model": (
        PRESET,
        {f"{ENGINE}.extra_args": ["--max-model-len=131073"]},
        (
            f"{ENGINE}.extra_args: has max-model-len 131073, but KAITO accepts at most the "
            "model's 131072. Write at most 131072. [kaito-config]"
        ),
    ),
    "overlay": (
        PRESET,
        {"roles[0].overlay": {"spec": {"tolerations": []}}},
        (
            "roles[0].overlay: is given, but KAITO writes the pods of a preset. Remove it, or "
            "backend_options.preset. [backend-loss]"
        ),
    ),
    "memory": (
        PRESET,
        {"roles[0].resources.memory": "9Gi"},
        (
            "roles[0].resources.memory: is 9Gi, but KAITO's pods request only GPUs. Remove it: a "
            "pod "
            "has its node for itself. [backend-loss]"
        ),
    ),
    "other-gpus": (
        PRESET,
        {"roles[0].resources.gpu_resource": "amd.com/gpu"},
        "roles[0].resources.gpu_resource: is amd.com/gpu, but KAITO's pods request nvidia.com/gpu.",
    ),
    "key-of-the-token": (
        PRESET,
        {"roles[0].hugging_face_token.key": "TOKEN"},
        (
            "roles[0].hugging_face_token.key: is 'TOKEN', but KAITO reads the key HF_TOKEN of the "
            "Secret. Write HF_TOKEN, and rename the key. [backend-loss]"
        ),
    ),
}


@for_each("case", REFUSED)
def test_what_kaito_cannot_do_is_an_error(case: str) -> None:
    assert_refused(*REFUSED[case])
