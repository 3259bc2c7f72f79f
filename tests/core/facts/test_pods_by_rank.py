"""Words that a script adds in some pods only: what the reader makes of them is what bash does."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.engines import CommandFacts
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each

Body = dict[str, Any]
SIZES = "--data-parallel-size 3 --data-parallel-size-local 1 --data-parallel-address head"
SERVE = f"vllm serve M -tp 8 {SIZES}"
FORMS = (
    f'H=; [ "$R" -gt 0 ] && H=--headless; exec {SERVE} $H',
    f'H=; test "$R" != 0 && H=--headless; exec {SERVE} $H',
    f'H=""; if [ "$R" -gt 0 ]; then H="--headless"; fi; {SERVE} ${{H}}',
    f'H=; case "$R" in 0) ;; *) H=--headless;; esac; {SERVE} $H',
    f"H=; [[ $R != 0 ]] && H=--headless; {SERVE} $H",
    f"H=; (( R > 0 )) && H=--headless; {SERVE} $H",
    f"H=; if (( $R )); then H=--headless; fi; {SERVE} $H",
    f"H=--headless; [ $R -gt 0 ] || H=; {SERVE} $H",
    f'W=; [ "$R" -gt 0 ] && W=1; {SERVE} ${{W:+--headless}}',
    f'[ "$R" -gt 0 ] && W=1; {SERVE} ${{W+--headless}}',
    f"W=${{R#0}}; {SERVE} ${{W:+--headless}}",
    f'A=(); if [ "$R" -gt 0 ]; then A+=(--headless); fi; {SERVE} "${{A[@]}}"',
    f'A=({SERVE}); ((R)) && A+=(--headless); exec "${{A[@]}}"',
    f'A=(); [ $R = 0 ] || A[${{#A[@]}}]=--headless; {SERVE} ${{A[@]+"${{A[@]}}"}}',
    f'F=("" --headless --headless); {SERVE} ${{F[R]}}',
    f"declare -A F=([0]= [1]=--headless [2]=--headless); {SERVE} ${{F[$R]}}",
    f'set --; [ $R -gt 0 ] && set -- --headless; {SERVE} "$@"',
    f'{SERVE} $([ "$R" -gt 0 ] && echo --headless)',
    f"{SERVE} $(case $R in 0) ;; *) echo --headless;; esac)",
    f'C="{SERVE}"; [ $R -gt 0 ] && C+=" --headless"; eval "$C"',
    f'H=; [ $R -gt 0 ] && H=--headless; bash -c "{SERVE} $H"',
    f'extra() {{ [ "$1" = 0 ] || echo --headless; }}; {SERVE} $(extra $R)',
    f'H=; for i in 1 2; do [ "$R" = "$i" ] && H=--headless; done; {SERVE} $H',
    f"W=false; [ $R -gt 0 ] && W=true; H=; $W && H=--headless; {SERVE} $H",
    f'S=$((R * 1)); H=; [ $S -ne 0 ] && H="--headless --data-parallel-start-rank $S"; {SERVE} $H',
    f'H=; [ "$R" -ge 2 ] && H=--headless; {SERVE} $H',
)
"""Scripts that read the rank from $R."""


def container(script: str) -> Body:
    resources = {"limits": {"nvidia.com/gpu": 8}}
    command = ["bash", "-c", script]
    return {"name": "a", "image": "vllm/vllm-openai:v0.11.0", "command": command} | {
        "resources": resources
    }


def stateful_set(script: str, **spec: Any) -> Body:
    template = {"spec": {"containers": [container(f"R=${{HOSTNAME##*-}}; {script}")]}}
    metadata = {"name": "d"}
    spec = {"replicas": 3, "serviceName": "d", "template": template} | spec
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def job(script: str, index: str = "$JOB_COMPLETION_INDEX") -> Body:
    template = {"spec": {"containers": [container(f"R={index}; {script}")]}}
    spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "d"}, "spec": spec}


HOST = "${HOSTNAME##*-}"


def lws(script: str, index: str = "$LWS_WORKER_INDEX", **more: Any) -> Body:
    template = {"spec": {"containers": [container(f"R={index}; {script}")]}}
    spec = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": template}, **more}
    metadata = {"name": "d"}
    version, kind = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def by_rank(body: Body) -> list[CommandFacts]:
    facts = read_manifest(body)
    assert facts is not None
    (engine,) = facts.engines
    if engine.siblings is not None:
        return list(engine.siblings.commands)
    pods = [engine.entry, engine.worker, engine.worker]
    return [pod.command for pod in pods if pod is not None and pod.command is not None]


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@for_each("form", FORMS)
def test_each_pod_gets_the_words_that_bash_gives_it(form: str, tmp_path: Path) -> None:
    stub = tmp_path / "vllm"
    stub.write_text('#!/bin/sh\necho "$@"\n')
    stub.chmod(0o755)
    given = []
    for rank in range(3):
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "R": str(rank)}
        ran = subprocess.run(["/bin/bash", "-c", form], env=env, capture_output=True, check=True)
        given.append(ran.stdout.decode().split())
    headless = ["--headless" in words for words in given]
    starts = [int(w[w.index(S) + 1]) if S in w else None for w in given]

    bodies = (stateful_set(form), job(form), job(form, HOST), lws(form), lws(form, HOST))
    for body in bodies if headless[1] == headless[2] else bodies[:3]:
        read = by_rank(body)
        assert [command.headless for command in read] == headless
        assert [command.data_start_rank for command in read] == starts


S = "--data-parallel-start-rank"


def test_the_template_states_what_all_pods_have() -> None:
    facts = read_manifest(lws(FORMS[0]))
    assert facts is not None
    (engine,) = facts.engines
    entry = engine.entry.command
    worker = engine.worker.command if engine.worker is not None else None
    assert entry is not None
    assert worker is not None
    assert (entry.tensor, entry.data, entry.headless, entry.hidden) == (8, 3, False, None)
    assert (worker.tensor, worker.data, worker.headless, worker.hidden) == (8, 3, True, None)


def test_what_differs_between_the_pods_of_a_template_is_unknown() -> None:
    facts = read_manifest(stateful_set(FORMS[0]))
    assert facts is not None
    (engine,) = facts.engines
    command = engine.entry.command
    assert command is not None
    assert (engine.pods, command.tensor, command.hidden) == (3, 8, None)
    assert command.headless == Unknown("the pods of its template differ in it")
    assert command.options["--headless"] == command.headless


@for_each(
    "body",
    [
        lws(f'H=; [ "$R" -gt 0 ] && H=--headless; {SERVE} $H $(more)'),
        lws(FORMS[0], "$JOB_COMPLETION_INDEX"),
        lws(FORMS[0], HOST, replicas=2),
        job(FORMS[0], "${NODE_NAME##*-}"),
        lws(f'H=; [ "$R" -gt "$MOST" ] && H=--headless; {SERVE} $H'),
        stateful_set(FORMS[0], replicas="many"),
        stateful_set(FORMS[0], replicas=65),
    ],
)
def test_a_rank_that_is_not_known_fills_nothing(body: Body) -> None:
    facts = read_manifest(body)
    assert facts is not None
    command = facts.engines[0].entry.command
    assert command is not None
    assert command.hidden is not None
