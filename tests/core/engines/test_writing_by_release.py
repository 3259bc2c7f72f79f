"""What a release of an engine can be started with: by its own flags, by Ray, or not at all."""

from typing import Any

import pytest

from kthena_components.core.engines import (
    Refusal,
    default_launcher,
    stated_release,
    unsupported,
    write_commands,
)
from kthena_components.core.values.images import Version
from tests.support.launches import launch

SCRIPT = "/vllm-workspace/examples/ray_serving/multi-node-serving.sh"
OLD_SCRIPT = "/vllm-workspace/examples/online_serving/multi-node-serving.sh"
SGLANG = "python3 -m sglang.launch_server --model-path org/M --host 0.0.0.0 --port 8080 --tp-size"


@pytest.mark.parametrize(
    ("release", "script"),
    [
        ((0, 8, 0), OLD_SCRIPT),
        ((0, 20, 2), OLD_SCRIPT),
        ((0, 21, 0), SCRIPT),
        ((0, 33, 0), SCRIPT),
        (None, SCRIPT),
    ],
)
def test_rays_script_is_named_where_the_release_has_it(
    release: Version | None, script: str
) -> None:
    commands = write_commands(launch(launcher="ray", pipeline=2, pods=2, release=release))

    assert commands.entry[2].startswith(f"bash {script} leader ")
    assert (commands.worker or ())[:2] == ("bash", script)


@pytest.mark.parametrize(
    ("release", "expert"),
    [
        ((0, 4, 10, 1), "--ep-size 8 --enable-ep-moe"),
        ((0, 4, 10, 2), "--ep-size 8"),
        (None, "--ep-size 8"),
    ],
)
def test_sglang_spreads_experts_as_its_release_does(release: Version | None, expert: str) -> None:
    entry = write_commands(launch(kind="sglang", expert=True, release=release)).entry

    assert " ".join(entry) == f"{SGLANG} 8 --pp-size 1 {expert}"


def test_an_sglang_without_pipelines_has_no_option_of_them() -> None:
    first = launch(kind="sglang", release=(0, 4, 6, 1))

    assert " ".join(write_commands(first).entry) == f"{SGLANG} 8"


@pytest.mark.parametrize(
    ("kind", "release", "data", "launcher"),
    [
        ("vllm", (0, 10, 1), 1, "ray"),
        ("vllm", (0, 11, 0), 1, "ray"),
        ("vllm", (0, 11, 1), 1, "native"),
        ("vllm", None, 1, "native"),
        ("vllm", (0, 10, 1), 8, "native"),
        ("sglang", (0, 4, 6), 1, "native"),
        ("sglang", None, 1, "native"),
    ],
)
def test_who_joins_pods_follows_from_the_release(
    kind: str, release: Version | None, data: int, launcher: str
) -> None:
    assert default_launcher(kind, release, data) == launcher


@pytest.mark.parametrize(
    ("kind", "image", "release"),
    [
        ("vllm", "vllm/vllm-openai:v0.10.1", (0, 10, 1)),
        ("vllm", "mirror:5000/vllm/vllm-openai:v0.33.0-cu129", (0, 33, 0)),
        ("vllm", "vllm/vllm-openai:latest", None),
        ("vllm", "me/vllm:v0.10.1", None),
        ("vllm", "vllm/vllm-openai:v0.11\ue0007\ue001", None),
        ("vllm", "lmsysorg/sglang:v0.5.2", None),
        ("sglang", "lmsysorg/sglang:v0.4.6.post2-cu124", (0, 4, 6, 2)),
    ],
)
def test_the_release_is_what_the_engines_own_image_states(
    kind: str, image: str, release: Version | None
) -> None:
    assert stated_release(kind, image) == release


NATIVELY = Refusal(
    "launcher",
    "is 'native' over 2 pods, for which vLLM needs --nnodes; it has that since 0.11.1, and the "
    "image states 0.11.0",
    "use vllm/vllm-openai:v0.11.1 or later, or launcher: ray",
    "engine-launch",
)
BY_RELEASE: dict[str, tuple[dict[str, Any], Version, list[Refusal]]] = {
    "no --nnodes": ({"pipeline": 2, "pods": 2}, (0, 11, 0), [NATIVELY]),
    "neither --nnodes nor Ray's script": (
        {"pipeline": 2, "pods": 2},
        (0, 7, 3),
        [
            NATIVELY._replace(
                seen=NATIVELY.seen.replace("0.11.0", "0.7.3"),
                remedy="use vllm/vllm-openai:v0.11.1 or later",
            )
        ],
    ),
    "no script of Ray": (
        {"pipeline": 2, "pods": 2, "launcher": "ray"},
        (0, 7, 3),
        [
            Refusal(
                "image",
                "states vLLM 0.7.3, and the script that joins 2 pods with Ray, "
                "multi-node-serving.sh, is in its images since 0.8.0",
                "use vllm/vllm-openai:v0.8.0 or later",
                "engine-launch",
            )
        ],
    ),
    "workers that count the ranks of all pods": (
        {"pipeline": 2, "pods": 2, "launcher": "ray"},
        (0, 11, 1),
        [
            Refusal(
                "image",
                "states vLLM 0.11.1, whose workers reject a copy of 16 ranks that Ray spreads "
                "over pods of 8 GPUs",
                "use vllm/vllm-openai:v0.11.2 or later, or launcher: native",
                "engine-launch",
            )
        ],
    ),
    "copies before there were copies in pods": (
        {"tensor": 4, "data": 4, "pods": 2},
        (0, 8, 5, 1),
        [
            Refusal(
                "parallelism.data",
                "is 4 over 2 pods, for which vLLM needs --data-parallel-size-local; it has that "
                "since 0.9.0, and the image states 0.8.5.post1",
                "use vllm/vllm-openai:v0.9.0 or later, or set data to 1",
                "engine-launch",
            )
        ],
    ),
    "copies in one pod before there were copies": (
        {"tensor": 4, "data": 2},
        (0, 8, 2),
        [
            Refusal(
                "parallelism.data",
                "is 2, for which vLLM needs --data-parallel-size; it has that since 0.8.3, and "
                "the image states 0.8.2",
                "use vllm/vllm-openai:v0.8.3 or later, or set data to 1",
                "engine-launch",
            )
        ],
    ),
    "copies that Ray joins before it could": (
        {"tensor": 8, "data": 2, "pods": 2, "launcher": "ray"},
        (0, 9, 0, 1),
        [
            Refusal(
                "parallelism.data",
                "is 2 over 2 pods, for which vLLM needs --data-parallel-backend; it has that "
                "since 0.9.1, and the image states 0.9.0.1",
                "use vllm/vllm-openai:v0.9.1 or later, or set data to 1",
                "engine-launch",
            )
        ],
    ),
    "experts before they could be spread": (
        {"expert": True},
        (0, 7, 3),
        [
            Refusal(
                "parallelism.expert",
                "is true, for which vLLM needs --enable-expert-parallel; it has that since 0.8.0, "
                "and the image states 0.7.3",
                "use vllm/vllm-openai:v0.8.0 or later, or set expert to false",
                "engine-launch",
            )
        ],
    ),
    "a pipeline before SGLang had one": (
        {"kind": "sglang", "pipeline": 2, "pods": 2},
        (0, 4, 6, 1),
        [
            Refusal(
                "parallelism.pipeline",
                "is 2 over 2 pods, for which SGLang needs --pp-size; it has that since "
                "0.4.6.post2, and the image states 0.4.6.post1",
                "use lmsysorg/sglang:v0.4.6.post2 or later, or set pipeline to 1",
                "engine-launch",
            )
        ],
    ),
}


@pytest.mark.parametrize(("shape", "release", "refusals"), BY_RELEASE.values(), ids=BY_RELEASE)
def test_what_a_release_cannot_do_is_refused(
    shape: dict[str, Any], release: Version, refusals: list[Refusal]
) -> None:
    assert unsupported(launch(**shape, release=release)) == refusals
    assert unsupported(launch(**shape)) == []


@pytest.mark.parametrize(
    ("shape", "release"),
    [
        ({"pipeline": 2, "pods": 2}, (0, 11, 1)),
        ({"pipeline": 2, "pods": 2, "launcher": "ray"}, (0, 8, 0)),
        ({"pipeline": 2, "pods": 2, "launcher": "ray"}, (0, 11, 0)),
        ({"pipeline": 2, "pods": 2, "launcher": "ray"}, (0, 11, 2)),
        ({"data": 2, "pods": 2, "launcher": "ray"}, (0, 11, 1)),
        ({"tensor": 4, "data": 4, "pods": 2}, (0, 9, 0)),
        ({"data": 2, "pods": 2, "launcher": "ray"}, (0, 9, 1)),
        ({"tensor": 4, "data": 2}, (0, 8, 3)),
        ({"launcher": "ray"}, (0, 6, 0)),
        ({"expert": True}, (0, 8, 0)),
        ({"kind": "sglang", "pipeline": 2, "pods": 2}, (0, 4, 6, 2)),
    ],
)
def test_what_a_release_can_do_is_written(shape: dict[str, Any], release: Version) -> None:
    assert unsupported(launch(**shape, release=release)) == []
