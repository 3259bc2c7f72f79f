"""Launch scripts of a pod with 8 GPUs: the one that fits is let pass, its mutation is found."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import Level
from tests.support.for_each import for_each

RIGHT, WRONG = "8", "16"

CONSTRUCTS = {
    "set --": 'set -- serve M -tp SIZE; vllm "$@"',
    "set -- behind parameters": 'set -- -tp SIZE "$@"; vllm serve M "$@"',
    "shift": "set -- 16 SIZE; shift; vllm serve M -tp $1",
    "a function and its arguments": 'serve() { vllm serve M -tp "$2"; }; serve 16 SIZE',
    "a function that calls another": 'a() { vllm serve M "$@"; }; b() { a -tp "$1"; }; b SIZE',
    "a function that returns early": "f() { TP=SIZE; return; TP=16; }; f; vllm serve M -tp $TP",
    "an array": 'ARGS=(-tp SIZE); vllm serve M "${ARGS[@]}"',
    "an array that grows": 'ARGS=(serve M); ARGS+=(-tp SIZE); exec vllm "${ARGS[@]}"',
    "an array by numbers": 'S=(2 4 SIZE); vllm serve M -tp "${S[2]}" --port "${#S[@]}"',
    "an array by names": "declare -A S=([a]=16 [b]=SIZE); vllm serve M -tp ${S[b]}",
    "an engine in a pipeline": "vllm serve M -tp SIZE 2>&1 | tee /tmp/log",
    "an engine in the background": "vllm serve M -tp SIZE & sleep 5; wait",
    "a signal that ends the engine": 'vllm serve M -tp SIZE & P=$!; trap "kill $P" TERM; wait $P',
    "a word over two lines": "vllm serve M --tensor-parallel-size\\\n=SIZE",
    "a loop over words": "for n in 16 4 SIZE; do TP=$n; done; vllm serve M -tp $TP",
    "a loop that is left": "for TP in SIZE 16; do break; done; vllm serve M -tp $TP",
    "a loop over a condition": "n=1; while [ $n -lt SIZE ]; do ((n*=2)); done; vllm serve M -tp $n",
    "a loop that counts": "for ((n=1; n<SIZE; n*=2)); do :; done; vllm serve M -tp $n",
    "a loop that restarts": "while true; do vllm serve M -tp SIZE; done; vllm serve M -tp 16",
    "env in front of a shell": "TP=16; env TP=SIZE bash -c 'vllm serve M -tp $TP'",
    "a variable in front of a shell": "TP=16; TP=SIZE bash -c 'vllm serve M -tp $TP'",
    "a variable in front of an engine": "TP=SIZE; TP=16 vllm serve M -tp $TP",
    "what is not exported": "TP=16; bash -c 'vllm serve M -tp ${TP:-SIZE}'",
    "export of what a command writes": "export $(echo TP=SIZE); vllm serve M -tp $TP",
    "export of a file": "export $(cat /c/env.SIZE); vllm serve M -tp $TP",
    "a file that is sourced": "TP=16; source /c/env.SIZE; vllm serve M -tp $TP",
    "eval": "eval 'TP=SIZE'; vllm serve M -tp $TP",
    "eval of a command": "CMD='vllm serve M -tp SIZE'; eval \"exec $CMD\"",
    "printf in a substitution": "vllm serve M $(printf -- '-tp %s' SIZE)",
    "arithmetic": "TP=4; (( TP += SIZE - 4 )); vllm serve M -tp $TP",
    "unset": "TP=16; unset TP; vllm serve M -tp ${TP:-SIZE}",
    "local": "TP=SIZE; f() { local TP=16; }; f; vllm serve M -tp $TP",
    "a condition that holds": "TP=16; [ -n x ] && TP=SIZE; vllm serve M -tp $TP",
    "a condition over words": "if [[ 2 = [0-9] ]]; then T=SIZE; else T=16; fi; vllm serve M -tp $T",
    "case": "case x-y in z) T=16;; x*) T=SIZE;; esac; vllm serve M -tp $T",
    "brace expansion": "vllm serve M --{seed=1,tensor-parallel-size=SIZE}",
    "a function that nothing calls": "old() { vllm serve M -tp 16; }; vllm serve M -tp SIZE",
    "a decoy behind exec": "exec vllm serve M -tp SIZE; vllm serve M -tp 16",
    "a decoy behind exit": "vllm serve M -tp SIZE; exit 0; vllm serve M -tp 16",
    "a decoy in if false": "if false; then vllm serve M -tp 16; fi; vllm serve M -tp SIZE",
    "a decoy behind set -e": "set -e; vllm serve M -tp SIZE; false; vllm serve M -tp 16",
    "a decoy in a here-document": "cat <<E >/x\nvllm serve M -tp 16\nE\nvllm serve M -tp SIZE",
    "ANSI-C quoting": "vllm serve $'it\\'s' $'-tp' $'SIZE'",
    "a mounted script in its folder": "cd /c && ./start.sh SIZE",
    "a mounted script by its own path": 'cd /tmp; bash "$(dirname /c/x)/start.sh" SIZE',
    "a script beside another one": 'D=$(cd "$(dirname /c/x)" && pwd); bash "$D/start.sh" SIZE',
    "a script on the standard input": "bash -s SIZE <<'E'\nvllm serve M -tp $1\nE",
    "a here-string": "read -r A TP <<< '16 SIZE'; vllm serve M -tp $TP",
    "a pattern taken off": "X=tp-SIZE.yaml; X=${X#tp-}; vllm serve M -tp ${X%.yaml}",
    "a subshell": "TP=SIZE; (TP=16); TP=16 | cat; vllm serve M -tp $TP",
}
"""Scripts of bash in which SIZE is the tensor size, and another size misleads."""

DOUBTS = {
    "a condition that is not known": "TP=16; nvidia-smi && TP=8; vllm serve M -tp $TP",
    "the other way": "TP=16; nvidia-smi || TP=8; vllm serve M -tp $TP",
    "a branch": 'TP=16; if [ -f /opt/x ]; then TP=8; fi; vllm serve M -tp "$TP"',
    "a branch that is left": "f() { [ -f /x ] && return; TP=8; }; TP=16; f; vllm serve M -tp $TP",
    "a case": "TP=16; case $(uname) in L*) TP=8;; esac; vllm serve M -tp $TP",
    "a loop over what is not known": "TP=16; for TP in $(ls /x); do :; done; vllm serve M -tp $TP",
    "a loop that may not run": "TP=16; while read -r l; do TP=8; done < /x; vllm serve M -tp $TP",
    "a file that is not known": "TP=16; source /opt/env.sh; vllm serve M -tp $TP",
    "a function of such a file": ". /opt/lib.sh; TP=16; choose; vllm serve M -tp $TP",
    "export of what is not known": "TP=16; export $(cat /etc/env); vllm serve M -tp $TP",
    "eval of what is not known": 'TP=16; eval "$(python3 sizes.py)"; vllm serve M -tp $TP',
    "read": "TP=16; read -r TP < /x; vllm serve M -tp $TP",
    "an element that is read": "A=(16); read 'A[0]' <<< 8; vllm serve M -tp $A",
    "an element that is declared": "A=(16); declare 'A[0]=8'; vllm serve M -tp $A",
    "a name that is read": 'TP=16; read "$N" <<< 8; vllm serve M -tp $TP',
    "a default that sets a variable": ": ${TP:=$'8'}; vllm serve M -tp ${TP:-16}",
    "local outside a function": "TP=8; local TP=16; vllm serve M -tp $TP",
    "time of an assignment": "TP=16; time TP=8; vllm serve M -tp $TP",
    "a parameter that is shifted": 'set -- $(ls /x) 16; shift; vllm serve M -tp "$1"',
    "an array with what is not known": 'A=($(ls /x) 16); vllm serve M -tp "${A[1]}"',
    "a function by its branch": "f() { T=8; }; [ -f /x ] && f() { T=16; }; f; vllm serve M -tp $T",
    "a trap": "TP=16; trap 'TP=8' USR1; wait $!; vllm serve M -tp $TP",
    "engines side by side": "vllm serve M -tp 8 --port 1 & vllm serve M -tp 16 --port 2 & wait",
    "engines in a pipeline": "vllm serve M -tp 16 | vllm serve M -tp 16",
    "engines in a loop": "for i in 0 1; do vllm serve M -tp 16 & done; wait",
    "an engine in a branch": "if [ -f /x ]; then exec vllm serve M -tp 16; fi; exec python3 app.py",
    "an engine if something fails": "python3 app.py || vllm serve M -tp 16",
    "a script that is not read": "coproc vllm serve M -tp 16",
    "a name that is not known": "$RUNNER vllm serve M -tp 16",
    "a part of an array": 'S=(-tp 8 -tp 16); vllm serve M "${S[@]:2}"',
    "printf -v": "printf -v TP %d 16; vllm serve M -tp $TP",
    "printf -v without a blank": "TP=8; printf -vTP %d 16; vllm serve M -tp $TP",
    "let": "TP=16; let 'TP = 16 / 2'; vllm serve M -tp $TP",
    "an escape by a code": "vllm serve M -tp 16 $'\\x2dtp' $'8'",
    "a pattern replaced": "X=-tp,16; vllm serve M ${X//,/ }",
}
"""Scripts of which the size is not known, though one stands in them."""


def judged(script: str, *env: dict[str, Any]) -> list[tuple[str, Level]]:
    container: dict[str, Any] = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.11.0",
        "command": ["bash", "-c", script],
        "env": list(env),
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "volumeMounts": [{"name": "c", "mountPath": "/c"}],
    }
    volumes = [{"name": "c", "configMap": {"name": "c", "defaultMode": 0o755}}]
    template = {"spec": {"containers": [container], "volumes": volumes}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"template": template}}  # fmt: skip
    data = {f"env.{size}": f"TP={size}\n" for size in (RIGHT, WRONG)}
    data["start.sh"] = '#!/bin/bash\nexec vllm serve M -tp "$1"\n'
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    context = Context(config_maps=gather([config_map]))
    found = check_manifest(body, context=context)
    return [(f.rule, f.level) for f in found if f.rule == "world-size-equals-gpus"]


@for_each("script", CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_a_size_is_read_through_the_script(script: str) -> None:
    assert judged(script.replace("SIZE", RIGHT)) == []
    assert judged(script.replace("SIZE", WRONG)) == [("world-size-equals-gpus", Level.MANDATORY)]


@for_each("script", DOUBTS.values(), ids=DOUBTS)
def test_a_size_that_is_not_known_refuses_nothing(script: str) -> None:
    assert judged(script) == [("world-size-equals-gpus", Level.UNKNOWN)]


@pytest.mark.parametrize("first", ["fieldRef", "secretKeyRef"])
def test_a_number_of_each_pod_differs_from_an_unknown_value(first: str) -> None:
    name = f"NUMBER_{first}"
    script = f'if [ "${name}" = 0 ]; then exec vllm serve M -tp 16; fi; exec python3 app.py'
    path = "metadata.labels['apps.kubernetes.io/pod-index']"
    sources = {"fieldRef": {"fieldPath": path}, "secretKeyRef": {"name": "s", "key": "k"}}
    levels = {"fieldRef": Level.MANDATORY, "secretKeyRef": Level.UNKNOWN}

    for source in sorted(sources, key=first.__ne__):
        found = judged(script, {"name": name, "valueFrom": {source: sources[source]}})
        assert found == [("world-size-equals-gpus", levels[source])]
