"""Previews that were right, with other events, values and characters in them."""

import json
import random
from typing import Any

from tests.cli.previews import (
    SERVING,
    SET,
    Body,
    document,
    events,
    message,
    row,
    serving,
    step,
    urn,
    violation,
)
from tests.toughness.mutate import MORE, STRANGE, change, manifest, text

_PIECES = (
    *STRANGE,
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "NaN",
    "1e999",
    '"sequence": 1',
    "\n{}\n",
    "\n[]\n",
    '{"a":',
)
_OPS = (
    "create",
    "update",
    "delete",
    "same",
    "replace",
    "create-replacement",
    "delete-replaced",
    "import",
    "read",
    "x",
)
_TYPES = (
    "kubernetes:apps/v1:Deployment", "kubernetes:core/v1:Pod", "kubernetes:batch/v1:Job",
    "kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing", "kubernetes::",
    "kubernetes:a:b:c", "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet",
)  # fmt: skip
_SENTENCES = (
    "spec.template: is 7, but must be 8. Write 8. [world-size-equals-gpus]",
    "spec: was not checked, because it is not known. [tp-divides-heads]",
    "x: is old. Waived until 2026-12-31: soon. [image-pinned]", "preview failed",
    "error: update failed", "a: b. [no-such-rule]", "[shm-present]", "<{%fg 1%}>x<{%reset%}>",
)  # fmt: skip


def preview(draw: random.Random) -> str:
    """Draw a preview, as events or as one document."""
    steps = [_step(draw) for _ in range(draw.choice((0, 1, 1, 2, 5)))]
    if draw.randrange(6) == 0:
        made = document(*steps, diagnostics=[message(_sentence(draw))])
        lines = [json.loads(made)]
    else:
        told = [_told(draw) for _ in range(draw.randrange(4))]
        result = draw.choice(("succeeded", "failed", None))
        made = events(*steps, *told, result=result, packs=draw.randrange(3))
        lines = [json.loads(line) for line in made.splitlines()]
    for line in lines:
        for _ in range(draw.choice((0, 0, 1, 2))):
            change(draw, line)
    draw.shuffle(lines)
    written = "\n".join(map(_json, lines))
    return text(draw, written, _PIECES) if draw.randrange(5) == 0 else written


def _json(value: Any) -> str:
    """Write what JSON can hold; bytes, and keys that it has not, become strings."""
    try:
        return json.dumps(value, default=repr)
    except TypeError:
        return json.dumps(repr(value))


def _plain(body: Body) -> Body:
    """Give an object as JSON has it."""
    made = json.loads(_json(body))
    return made if isinstance(made, dict) else {}


def _step(draw: random.Random) -> Body:
    if draw.randrange(4) == 0:
        return serving(*(draw.choice((None, [_row(draw), row()])) for _ in range(2)))
    old = _plain(manifest(draw))
    new = _plain(manifest(draw) if draw.randrange(3) == 0 else old)
    for _ in range(draw.randrange(3)):
        change(draw, new)
    version, kind = str(old.get("apiVersion", "")), str(old.get("kind", ""))
    own = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
    of = urn(draw.choice((own, own, *_TYPES)), draw.choice(("serving/llama", "x", "", "a::b$c")))
    path = draw.choice(("spec.replicas", "spec.template.spec", "a[0].b", ""))
    diff = draw.choice((None, {path: draw.choice(("update", "replace", "x"))}))
    of = draw.choice((of, of, SERVING, SET))
    return step(draw.choice(_OPS), of, draw.choice((old, None)), _plain(new), diff)


def _row(draw: random.Random) -> Body:
    made = row()
    for _ in range(draw.randrange(4)):
        made[draw.choice(sorted(made))] = draw.choice(MORE)
    return _plain(made)


def _told(draw: random.Random) -> Body:
    of = draw.choice((SERVING, SET, "", "x"))
    if draw.randrange(2):
        return violation(_sentence(draw), of, draw.choice(("mandatory", "advisory", "x")))
    return message(_sentence(draw), draw.choice(("error", "warning", "info", "debug")), urn=of)


def _sentence(draw: random.Random) -> str:
    made = "\n".join(draw.choice(_SENTENCES) for _ in range(draw.randrange(1, 4)))
    return text(draw, made) if draw.randrange(3) == 0 else made
