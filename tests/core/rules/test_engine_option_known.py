"""Options that the release of an image does not have, or reads otherwise."""

from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, SpecError, run_rule
from kthena_components.core.rules.engine_options_and_config_file import engine_option_known
from tests.support.specs import ENGINE_NATIVE, changed, gpu_template

VLLM, SGLANG = "vllm/vllm-openai:v", "lmsysorg/sglang:v"


def found(image: str, entry: str, worker: str | None = None) -> list[Finding]:
    pods = [_pod(image, command) for command in (entry, worker) if command is not None]
    engine = EngineFacts(
        path="e",
        name="decode",
        pods=2,
        replicas=1,
        entry=read_pod(pods[0], "entry", command_path="entry.command"),
        worker=read_pod(pods[1], "worker", command_path="worker.command") if worker else None,
    )
    return list(run_rule(engine_option_known, ServingFacts(path="", name="s", engines=(engine,))))


def _pod(image: str, command: str) -> dict[str, Any]:
    pod: dict[str, Any] = gpu_template(command)
    pod["spec"]["containers"][0]["image"] = image
    return pod


@pytest.mark.parametrize(
    ("words", "without", "having"),
    [
        ("vllm serve M --nnodes 2", "0.11.0", "0.11.1"),
        ("vllm serve M -pcp 2", "0.11.2", "0.12.0"),
        ("vllm serve M -dc {}", "0.23.0", "0.24.0"),
        ("vllm serve M -dcp 2", "0.10.1.1", "0.10.2"),
        ("vllm serve M -ep", "0.13.0", "0.14.0"),
        ("vllm serve M --swap-space 4", "0.18.0", "0.17.1"),
        ("vllm serve M --task generate", "0.13.0", "0.12.0"),
        ("vllm serve M --rope-scaling {}", "0.11.1", "0.11.0"),
        ("vllm serve M --guided-decoding-backend auto", "0.12.0", "0.11.2"),
        ("vllm serve M --device cuda", "0.10.0", "0.9.2"),
        ("vllm serve M --num-scheduler-steps 4", "0.10.1", "0.10.0"),
        ("vllm serve M --disable-log-requests", "0.17.0", "0.16.0"),
        ("vllm serve M -ep --disable-expert-parallel", "0.32.0", "0.33.0"),
        ("vllm serve M --enable-chunked-prefill false", "0.9.0", "0.6.0"),
    ],
)
def test_an_option_is_refused_by_the_releases_without_it(
    words: str, without: str, having: str
) -> None:
    refused = found(VLLM + without, words)

    assert Level.MANDATORY in {finding.level for finding in refused}
    assert Level.MANDATORY not in {finding.level for finding in found(VLLM + having, words)}


@pytest.mark.parametrize(
    ("words", "without", "having"),
    [
        ("--attn-dp-size 2", "0.5.21", "0.5.22"),
        ("--context-length 128k", "0.5.9", "0.5.10"),
        ("--context-length 128K", "0.5.23", "0.4.6"),
        ("--enable-ep-moe", "0.5.3", "0.4.6"),
    ],
)
def test_sglang_refuses_what_a_release_does_not_have(words: str, without: str, having: str) -> None:
    command = f"python3 -m sglang.launch_server --model-path M {words}"

    assert [finding.level for finding in found(SGLANG + without, command)] == [Level.MANDATORY]
    if "128K" not in words:
        assert found(SGLANG + having, command) == []


def test_each_pod_is_checked_and_a_thing_is_said_once() -> None:
    same = found(VLLM + "0.33.0", "vllm serve M --bogus", "vllm serve M --bogus")
    other = found(VLLM + "0.33.0", "vllm serve M", "vllm serve M --headless --bogus")

    assert [finding.path for finding in same] == ["entry.command"]
    assert [finding.path for finding in other] == ["worker.command"]


def test_a_release_that_is_not_sure_is_advice_and_says_by_which_it_was_checked() -> None:
    (finding,) = found("registry.example.com/vllm:1", "vllm serve M --swap-space 4")

    assert finding.level is Level.ADVISORY
    assert "checked against vLLM 0.33.0, because the image is not vLLM's own" in finding.seen


def test_what_every_release_refuses_is_refused_whatever_the_image() -> None:
    (finding,) = found("registry.example.com/vllm:1", "vllm serve M -tp eight")

    assert finding.level is Level.MANDATORY


def test_options_that_a_user_adds_are_at_the_field_that_has_them() -> None:
    with pytest.raises(SpecError) as refused:
        compile_serving(
            changed(ENGINE_NATIVE, {"roles[0].engine.extra_args": ["--max-model-length"]})
        )
    assert "roles[0].engine.extra_args: engine 'decode': vLLM 0.33.0 has no" in str(refused.value)
