"""A serving that a branch hides is found, or its file is named.

Each attack in hidden_servings/ has files, the command that really gives the wrong object (none if
it needs a cluster), and what `check` must tell.
"""

import io
import json
import shlex
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.reading.loader import Loader
from tests.cli.conftest import Command, Write
from tests.support.for_each import for_each
from tests.support.manifests import FOUND, deployment
from tests.support.programs import program

pytestmark = [pytest.mark.programs, pytest.mark.on_path("helm", "kustomize")]
HERE = Path(__file__).parent / "hidden_servings"
GOOD, BAD = deployment(gpus=8), deployment(gpus=4)
IMAGE, DEVICE, RANKS = "vllm/vllm-openai:v0.11.0", "nvidia.com/gpu", "--tensor-parallel-size"
WEB = (
    GOOD[: GOOD.index("          resources:")].replace(IMAGE, "app").replace(f', {RANKS}, "8"', "")
)
"""A workload without a sign."""
ESCAPED = (
    BAD.replace(IMAGE, r'"\x76\u006clm/\x76llm-openai:v0.11.0"')
    .replace(DEVICE, r'"nvidi\x61.com/g\x70u"')
    .replace(RANKS, r'"--tensor-p\x61rallel-size"')
)
"""The wrong one, in which no word of an engine stands as it is read."""
BINARY = BAD.replace(IMAGE, "!!binary dmxsbS92bGxtLW9wZW5haTp2MC4xMS4w").replace(
    DEVICE, r'"nvidia.com/\u0067pu"'
)
TEXTS = {"GOOD": GOOD, "BAD": BAD, "WEB": WEB, "ESCAPED": ESCAPED, "BINARY": BINARY}
"""Files that attacks name by a word."""
FOUND_WORD = "found"


def _attacks() -> dict[str, dict[str, Any]]:
    found = {
        f"{file.stem}, {name}": attack
        for file in sorted(HERE.glob("*.yaml"))
        for name, attack in yaml.safe_load(file.read_text()).items()
    }
    return {name: {**attack, "folder": f"m{i}"} for i, (name, attack) in enumerate(found.items())}


ATTACKS = _attacks()


def _content(stated: str | dict[str, str]) -> str | bytes:
    """Give the content of a file: a string, the name of one, or the files of a packed chart."""
    if isinstance(stated, str):
        return TEXTS.get(stated, stated)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in stated.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def _objects(command: str, folder: Path) -> Any:
    """Give the objects that a command makes or applies."""
    named, *words = shlex.split(command)
    if named == "kubectl":
        text = Path(folder, words[-1]).read_text()
    else:
        done = subprocess.run(
            [program(named), *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        text = done.stdout
    return [Loader(part).get_single_data() for part in text.split("\n---\n")]


def _is_wrong(objects: Any) -> bool:
    """Return whether an object has 8 ranks on 4 devices."""
    text = json.dumps(objects)
    return all(each in text for each in ('"nvidia.com/gpu": "4"', "tensor-parallel-size", "vllm"))


def _check(run: Command, write: Write, name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    for file, stated in attack["files"].items():
        write(f"{attack['folder']}/{file}", _content(stated))
    if "wrong" in attack:
        assert _is_wrong(_objects(attack["wrong"], tmp_path / attack["folder"])), (
            "it is not an attack"
        )
    done = run(attack["folder"])
    told = FOUND if attack["told"] == FOUND_WORD else attack["told"]
    assert told in done.out + done.err, done.out + done.err


def _of(subject: str) -> list[str]:
    return [name for name in ATTACKS if name.startswith(subject)]


@for_each("name", _of("charts"))
def test_charts(run: Command, write: Write, name: str, tmp_path: Path) -> None:
    _check(run, write, name, tmp_path)


@for_each("name", _of("kustomizations"))
def test_kustomizations(run: Command, write: Write, name: str, tmp_path: Path) -> None:
    _check(run, write, name, tmp_path)


@for_each("name", _of("releases"))
def test_releases(run: Command, write: Write, name: str, tmp_path: Path) -> None:
    _check(run, write, name, tmp_path)


@for_each("name", _of("files"))
def test_files(run: Command, write: Write, name: str, tmp_path: Path) -> None:
    _check(run, write, name, tmp_path)
