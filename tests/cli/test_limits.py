"""Where reading ends, it is told: nothing that stands behind a limit counts as looked at."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml

from kthena_components.checker.manifest import read_manifest
from kthena_components.checker.update_rules import check_change
from kthena_components.cli.review.planned_changes import Effect, planned_changes
from kthena_components.cli.review.preview import Step
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from tests.cli.conftest import Command, Write
from tests.rules.cases import judge

LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
LAST = "vllm serve m -tp 4"
"""An engine that uses half of its GPUs, which stands behind everything else."""


def said(base: str, rule: str, **changes: Any) -> list[str]:
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return [str(found) for found in judge(base, dotted) if found.rule == rule]


def engine(scripts: dict[str, str], command: list[str], mounts: int = 1) -> str:
    """Give a pod with 8 GPUs, and its scripts in ConfigMaps."""
    container = {
        "name": "engine",
        "command": command,
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "volumeMounts": [
            *({"name": "empty", "mountPath": f"/m{n}"} for n in range(mounts - 1)),
            {"name": "scripts", "mountPath": "/s"},
        ],
    }
    volumes = [{"name": name, "configMap": {"name": name}} for name in ("empty", "scripts")]
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [container], "volumes": volumes},
    }  # fmt: skip
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        for name, data in (("empty", {}), ("scripts", scripts))
    ]
    return yaml.safe_dump_all([pod, *maps])


def script(count: int, how: str = "") -> str:
    files = {f"s{n}": "true" for n in range(count - 1)} | {f"s{count - 1}": LAST}
    return engine(files, ["sh", "-c", "\n".join(f"{how}/s/{name}" for name in files)])


def nested(depth: int) -> str:
    files = {f"s{n}": f"sh /s/s{n + 1}" for n in range(depth - 1)} | {f"s{depth - 1}": LAST}
    return engine(files, ["sh", "/s/s0"])


def mounted(count: int) -> str:
    return engine({"s": LAST}, ["/s/s"], mounts=count)


LIMITS: dict[str, tuple[Callable[[int], str], int, str]] = {
    "files that are taken in": (
        partial(script, how=". "),
        16,
        "it runs or sources more than 16 files",
    ),
    "scripts": (script, 16, "it runs or sources more than 16 files"),
    "shells": (nested, 12, "its scripts and functions are nested more than 12 deep"),
    "mounts": (mounted, 100, "more than 100 ConfigMaps are mounted in its container"),
}


@pytest.mark.parametrize(("make", "most", "because"), LIMITS.values(), ids=LIMITS)
def test_an_engine_behind_a_limit_is_not_checked(
    run: Command, write: Write, make: Callable[[int], str], most: int, because: str
) -> None:
    write("a.yaml", make(most))
    assert run("a.yaml").lines[-1].endswith(": 1 mandatory, 0 advisory, 0 not checked")
    write("a.yaml", make(most + 1))
    done = run("a.yaml")
    assert "0 mandatory" in done.lines[-1]
    assert ", 0 not checked" not in done.lines[-1]
    assert because in done.out


def test_another_engine_does_not_hide_one_behind_a_limit(run: Command, write: Write) -> None:
    pod, *maps = yaml.safe_load_all(script(17))
    small = {
        "name": "small",
        "command": ["vllm", "serve", "m"],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    pod["spec"]["containers"].append(small)
    write("a.yaml", yaml.safe_dump_all([pod, *maps]))
    assert "it runs or sources more than 16 files" in run("a.yaml").out


def test_arguments_of_a_variable_are_read_to_their_end() -> None:
    value = f"{'--seed 1 ' * 2000}--tensor-parallel-size 4"
    env = [{"name": "VLLM_ADDITIONAL_ARGS", "value": value}]
    container = {"name": "main", "env": env, "resources": {"limits": {"nvidia.com/gpu": 8}}}
    facts = read_manifest(
        {
            "apiVersion": "serving.kserve.io/v1alpha2",
            "kind": "LLMInferenceService",
            "metadata": {"name": "x"},
            "spec": {"model": {"uri": "hf://a/b"}, "template": {"containers": [container]}},
        }
    )
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert command.tensor == 4


def test_a_value_that_is_not_known_is_found_wherever_it_stands() -> None:
    def body(many: list[Any], tier: int) -> dict[str, Any]:
        topology = {"groupPolicy": {"mode": "hard", "highestTierAllowed": tier}}
        return {
            "apiVersion": "workload.serving.volcano.sh/v1alpha1",
            "kind": "ModelServing",
            "spec": {"template": {"networkTopology": topology, "roles": many}},
        }

    role = {"name": "r", "entryTemplate": {"spec": {"x": [LATE, *[0] * 100_001]}}}
    assert ["not checked" in str(f) for f in check_change(body([role], 1), body([role], 2))] == [
        True
    ]


def test_a_template_that_changes_behind_many_labels_restarts_pods() -> None:
    def body(count: int) -> dict[str, Any]:
        labels = {f"l{n}": str(count) for n in range(100)}
        pod = {"spec": {"containers": [{"name": "a", "image": f"i:{count}"}]}}
        spec = {"replicas": 1, "selector": {}, "template": pod}
        return {"metadata": {"name": "d", "labels": labels}, "spec": spec}

    step = Step(
        op="update",
        urn="urn:pulumi:s::p::kubernetes:apps/v1:Deployment::d",
        old=body(1),
        new=body(2),
        outputs={},
        paths=(),
    )
    (happening,) = planned_changes([step])
    assert happening.effect is Effect.RESTARTED


def test_a_pattern_that_is_too_long_is_not_checked_by_its_beginning() -> None:
    def told(pattern: str) -> list[str]:
        member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
        return said("hyper-node", "hypernode-node-regex", spec__members=[member])

    assert told(f"^{'a' * 9_998}$") == []
    (found,) = told(f"^{'a' * 10_000}(")
    assert "it has 10002 characters, and at most 10000 are read" in found


@pytest.mark.parametrize(
    ("base", "rule", "changes", "told"),
    [
        (
            "inference-service",
            "kserve-multinode",
            {"metadata__name": f"{'a' * 300}_"},
            "but must be lower-case letters, digits and dashes",
        ),
        (
            "kthena",
            "kthena-generated-name",
            {"metadata__name": f"{'a' * 300}_"},
            "every name that Kthena generates starts with it, but it is not",
        ),
        (
            "kaito",
            "kaito-adapters",
            {
                "metadata__annotations": {"kaito.sh/runtime": "transformers"},
                "inference__adapters": [{"source": {"name": "a"}, "strength": f"0.{'5' * 40}x"}],
            },
            "but must be the text of a number from 0 to 1",
        ),
        (
            "lws",
            "lws-shape",
            {
                "spec__rolloutStrategy__rollingUpdateConfiguration__maxUnavailable": (
                    f"{'0' * 17}50%x"
                )
            },
            "maxUnavailable",
        ),
    ],
    ids=["KServe's name", "Kthena's name", "a strength", "a percentage"],
)
def test_the_end_of_a_text_counts(base: str, rule: str, changes: dict[str, Any], told: str) -> None:
    assert any(told in found for found in said(base, rule, **changes))
