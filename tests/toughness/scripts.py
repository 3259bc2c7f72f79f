"""Launch scripts that were right, and the pieces that are put into them."""

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.toughness.corpus import LATE, at, bases, goldens, places
from tests.toughness.mutate import STRANGE, Body, change, text

_STARTS = ("vllm", "sglang", "trtllm", "ray ", "dynamo")
PIECES = (
    *STRANGE, "<<EOF\n", "<<-'E'\n\tx\n\tE\n", "EOF\n", "<<<", "f() {", "}", "(", ")", "((", "))",
    "[[", "]]", "$(", "$((", "`", "${A:-", "${A[@]}", "${#A}", "${A//x/y}", "${!A}", "$@", "$*",
    "$1", "$#", "$?", "$$", "A=(1 2)\n", "A+=1\n", "A=$A$A\n", "export A=1\n", "declare -a A\n",
    "read -r A\n", "unset A\n", "source /c/k\n", ". /c/start\n", 'eval "$A"\n', "exec ",
    "if true; then\n", "else\n", "fi\n", "for i in 1 2; do\n", "done\n", "case $A in\n", "esac\n",
    "function g {", "&", "&&", "||", "|", ";", "!", "#", ">", ">>", "2>&1", "<(", "\\\n",
    "vllm serve M -tp 8\n", "python3 -m sglang.launch_server --tp 4\n", "ray start --head\n",
    "bash -c '", 'sh -c "', "sh /c/start\n", "/c/start\n", "env -u A ", "nohup ", "timeout 5 ",
    "mpirun -n 2 ", "--tensor-parallel-size=", "--config /c/k", "--data-parallel-size 9999999999",
    "-tp", "--", "-", "=", "--speculative-config={", "[1,", LATE,
)  # fmt: skip


@cache
def _known() -> tuple[str, ...]:
    """Give the scripts and commands of all manifests, and those of scripts.txt."""

    def found() -> Iterator[str]:
        for body in (*bases().values(), *goldens().values()):
            for place in places(body):
                value = at(body, place)
                if isinstance(value, str) and any(start in value for start in _STARTS):
                    yield value

    written = Path(__file__).with_suffix(".txt").read_text().split("%%\n")
    return (*written, *written, *dict.fromkeys(found()))


def script(draw: random.Random) -> str:
    """Draw a script with other pieces in it."""
    made = draw.choice(_known())
    if draw.randrange(4) == 0:
        made += draw.choice(("\n", ";", "&", " ")) + draw.choice(_known())
    return text(draw, made, PIECES) if draw.randrange(10) else made


def started(draw: random.Random) -> tuple[Body, Body]:
    """Draw an object that runs a script, as its command or from the ConfigMap given with it."""
    command: Any = draw.choice((
        ["sh", "-c", script(draw)], ["bash", "-euc", script(draw), "x", *script(draw).split()[:9]],
        ["sh", "/c/start"], ["/c/start", "a"], ["bash", "-c", ". /c/start; " + script(draw)],
        script(draw).split(" "), [],
    ))  # fmt: skip
    values = ("8", "$(TP)", script(draw), None, LATE)
    env = [{"name": name, "value": draw.choice(values)} for name in ("TP", "PP", "A", "EXTRA")]
    fields: Body = {
        "command": command,
        "args": draw.choice((["--seed", "1"], script(draw).split())),
        "env": env[: draw.randrange(5)],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "image": draw.choice(("vllm/vllm-openai:v0.11.0", "i", LATE)),
        "resources": {"limits": {"nvidia.com/gpu": draw.choice((1, 8, "8", LATE))}},
    }
    kept = {key: value for key, value in fields.items() if draw.randrange(4)}
    container = {"name": "e", **kept, "volumeMounts": [{"name": "c", "mountPath": "/c"}]}
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    template = {"spec": {"containers": [container], "volumes": volumes}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"template": template}}  # fmt: skip
    data = {"start": script(draw), "k": script(draw), "TP": draw.choice(("8", "x"))}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    if draw.randrange(4) == 0:
        change(draw, draw.choice((body, config_map)))
    return body, config_map
