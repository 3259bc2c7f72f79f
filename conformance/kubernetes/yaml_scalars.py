"""Compares how we read and write scalars of YAML with the API server, on random ones.

A ControllerRevision keeps any data, so one request shows what many scalars become.
"""

import math
import random
from textwrap import indent
from typing import Any

from conformance.report import Part
from kthena_components.cli.convert.output import dump
from kthena_components.cluster.client import Cluster
from kthena_components.reading.documents import Document, read_documents

NUMBER, LEAST = 20_000, 2_000
_WORDS = """
y Y n N yes Yes YES no No on On ON off OFF true True TRUE false yEs tRue null Null NULL nULL ~ = <<
inf nan 2026-01-01 22:30 1:2:3 2026-01-01T00:00:00Z
"""
_HEAD = """apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: scalars, namespace: default}
revision: 1
data:
  items:
"""


def compare_scalars(part: Part, api: Cluster, seed: int, number: int) -> None:
    """Send scalars as plain text and as we write them, and compare what is read."""
    draw = random.Random(f"scalars {seed}")  # noqa: S311 - a test
    texts = [_scalar(draw) for _ in range(number)]
    plain = "".join(f"  - {text}\n" for text in texts)
    differ = [(t, *pair) for t, *pair in zip(texts, _ours(plain), _theirs(api, plain), strict=True)
              if not _same(*pair)]  # fmt: skip
    part.check("plain scalars are those of the API server", holds=not differ, seen=differ[:5])
    written = indent(dump(texts), "  ")
    for who, found in (("the API server", _theirs(api, written)), ("us", _ours(written))):
        lost = [pair for pair in zip(texts, found, strict=True) if pair[0] != pair[1]]
        part.check(f"written strings are strings for {who}", holds=not lost, seen=lost[:5])
    part.count("scalars compared", number)


def _scalar(draw: random.Random) -> str:
    """Generate a scalar that looks like a number or a boolean, and may be neither."""
    sign, some = draw.choice(["", "", "+", "-"]), draw.randint(0, 4)
    match draw.randint(0, 4):
        case 0:
            return draw.choice(_WORDS.split())
        case 1:
            base = draw.choice(["0x", "0X", "0o", "0O", "0b", "0B", "0", "", "."])
            text = base + "".join(draw.choices("0123456701289_abEe.+-", k=some))
        case 2:
            whole, part, power = ("".join(draw.choices("0123456789_", k=some)) for _ in "abc")
            text = (
                f"{whole}{draw.choice(['', '.'])}{part}{draw.choice(['', 'e', 'E-', 'e+'])}{power}"
            )
        case 3:
            text = str(draw.choice([2**31, 2**53, 2**63, 2**64]) + draw.randint(-2, 2))
        case _:
            text = "".join(draw.choices("0178.eExXob_+-afynY", k=some + 1))
    plain = f"{sign}{text}"
    return "0" if plain in {"", "-", "+."} or plain.startswith("--") else plain


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-15, abs_tol=0)
    return type(ours) is type(theirs) and ours == theirs


def _ours(items: str) -> Any:
    (document,) = read_documents(f"{_HEAD}{items}", "", lambda *_: True)
    if not isinstance(document, Document):
        raise TypeError(document)
    return document.body["data"]["items"]


def _theirs(api: Cluster, items: str) -> Any:
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    text = f"{_HEAD}{items}"
    answer = api.ask("POST", path, text, {"dryRun": "All"}, content_type="application/yaml")
    return answer["data"]["items"]
