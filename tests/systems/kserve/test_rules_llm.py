"""kserve-llm-parallelism: sizes of an LLMInferenceService."""

import copy
import re
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from tests.support.peers import LATE, llm, said_by

RULE = "kserve-llm-parallelism"
AT = "spec.parallelism"
LATER = f"not checked, because the value is known only after the deployment. [{RULE}]"


@pytest.mark.parametrize(
    ("sizes", "worker"),
    [
        (None, False),
        ({"tensor": 8}, False),
        ({"tensor": 8, "pipeline": 1}, False),
        ({"data": 16, "dataLocal": 8}, True),
        ({"data": 8, "dataLocal": 8}, True),
    ],
)
def test_sizes_that_agree_pass(sizes: Any, worker: bool) -> None:
    assert said_by(RULE, llm(sizes, worker=worker)) == []


@pytest.mark.parametrize(
    ("sizes", "worker", "said"),
    [
        (
            {"tensor": 8},
            True,
            (
                "spec.worker: is given, but parallelism states neither data nor pipeline. Add data "
                "and dataLocal, or remove worker"
            ),
        ),
        (
            {"pipeline": 2, "data": 2, "dataLocal": 1},
            True,
            (
                f"{AT}.pipeline: is 2, but data is also given, and KServe accepts only one of "
                "them. Remove pipeline, or data and dataLocal"
            ),
        ),
        (
            {"data": 2},
            True,
            (
                f"{AT}.data: is 2, but dataLocal is not given. Add dataLocal, "
                "the copies of the model in each pod, or remove data"
            ),
        ),
        (
            {"dataLocal": 2, "pipeline": 2},
            True,
            (
                f"{AT}.dataLocal: is 2, but data is not given. Add data, "
                "the copies of the model in all pods together, or remove dataLocal"
            ),
        ),
        (
            {"data": 5, "dataLocal": 2},
            True,
            (
                f"{AT}.data: is 5, and dataLocal 2 does not divide it: KServe creates 5 ÷ 2 = 2 "
                "pods for 4 copies of the model, and the engine waits for 5. Write 4 or 6"
            ),
        ),
        (
            {"data": 2, "dataLocal": 4},
            True,
            (
                f"{AT}.data: is 2, and dataLocal 4 does not divide it: KServe creates 2 ÷ 4 = 1 "
                "pod for 4 copies of the model, and the engine waits for 2. Write dataLocal: 2"
            ),
        ),
        ({"tensor": 0}, False, f"{AT}.tensor: is 0, but must be at least 1. Write 1 or more"),
        (
            {"pipeline": 2},
            False,
            (
                f"{AT}.pipeline: is 2, but without a worker KServe ignores it (kserve#6044): the "
                "engine has 1 stage, and GPUs for more stay idle. Raise tensor instead, or write "
                "--pipeline-parallel-size into the command"
            ),
        ),
    ],
)
def test_sizes_that_do_not_agree_are_said(sizes: Any, worker: bool, said: str) -> None:
    assert said_by(RULE, llm(sizes, worker=worker)) == [f"{said}. [{RULE}]"]


def test_prefill_is_checked_as_well() -> None:
    prefill = {"parallelism": {"tensor": -1}}
    assert said_by(RULE, llm({"tensor": 8}, prefill=prefill)) == [
        f"spec.prefill.parallelism.tensor: is -1, but must be at least 1. Write 1 or more. [{RULE}]"
    ]


def test_what_is_not_known_is_not_checked() -> None:
    assert said_by(RULE, llm(LATE, worker=True)) == [f"{AT}: {LATER}"]
    assert said_by(RULE, llm({"data": LATE, "dataLocal": 8}, worker=True)) == [
        f"{AT}.data: {LATER}"
    ]


def _without_preset(service: Any) -> list[str]:
    found = check_manifest(service)
    assert not [each for each in found if each.rule == "executor-stated"]
    return [str(each) for each in found if each.rule == RULE]


def test_no_published_preset_starts_a_pipeline() -> None:
    """Options such as --nnodes would change nothing: there is no command to add them to."""
    sizes = {"tensor": 8, "pipeline": 2}
    (told,) = _without_preset(llm(sizes, worker=True))
    assert told == (
        f"{AT}.pipeline: is 2, for which KServe requires the LLMInferenceServiceConfig "
        "'kserve-config-llm-worker-pipeline-parallel', and KServe 0.20 publishes no preset for "
        "pipelines; nor have both pods a command. Add that config to this namespace, empty if "
        f"template and worker have a command, or state data and dataLocal instead. [{RULE}]"
    )

    pair = llm(sizes, worker=True)
    pair["spec"]["prefill"] = copy.deepcopy(
        {key: pair["spec"][key] for key in ("template", "worker", "parallelism")}
    )
    named = [re.search(r"'(.*)'", each) for each in _without_preset(pair)]
    assert [found and found[1] for found in named] == [
        "kserve-config-llm-decode-worker-pipeline-parallel",
        "kserve-config-llm-prefill-worker-pipeline-parallel",
    ]

    based = llm(sizes, worker=True)
    based["spec"]["baseRefs"] = [{"name": "mine"}]
    assert _without_preset(based) == []
    assert _without_preset(llm({"tensor": 8, "data": 2, "dataLocal": 1}, worker=True)) == []
    own = llm(sizes, worker=True)
    for field in ("template", "worker"):
        container = own["spec"][field]["containers"][0]
        container["command"] = ["vllm", "serve", "M", "-tp", "8", "-pp", "2", "--nnodes", "2"]
    assert _without_preset(own) == []
