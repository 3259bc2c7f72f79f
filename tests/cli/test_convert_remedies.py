"""What `convert` says about arguments that a target rejects works as it is written."""

import re
import shlex
from itertools import product
from pathlib import Path

import yaml

from kthena_components.cli.convert.command import in_flags
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.remedies import set_option, without
from kthena_components.systems import EMITTERS
from tests.cli.conftest import Command
from tests.rules.cases import bases
from tests.support.for_each import for_each

SOURCES = ("kthena", "lws", "modelserving", "leaderworkerset")
OTHERS = [
    ("role-set", "kserve"), ("stack", "matrixinfer"), ("racks", "matrixinfer"),
    ("split", "native"), ("config-map", "native"), ("rayjob", "booster"),
]  # fmt: skip
"""Objects that are converted by their pods or engines, and whose remedies led to the same error."""
_PATH = re.compile(r"^  ([a-z_]+[\w.\[\]]*): .*--set (\S+?=[^\s,]+?)[.,]? ")


def told(command: Command, source: Path, target: str, *more: str) -> list[str]:
    return command("convert", "--to", target, *more, str(source)).err.splitlines()


@for_each("name, target", [*product(filter(bases().get, SOURCES), EMITTERS), *OTHERS])
def test_each_change_makes_its_finding_go_away(name: str, target: str, command: Command) -> None:
    source = bases()[name]
    for line in told(command, source, target):
        assert not re.search(r"(?i)remove it[,.]|backend: ", line), line
        if found := _PATH.match(line):
            path, change = found.groups()
            left = told(command, source, target, "--set", change)
            assert not any(each.startswith(f"  {path}: ") for each in left), (line, left)


def test_a_value_of_an_option_does_not_replace_the_command() -> None:
    path = "roles[0].entry_template.spec.containers[0].command"
    remedies = set_option("--seed", 1, "write 1"), without("--seed", text="remove it")
    found = [Finding(path=path, seen="is 2", remedy=each, rule="type") for each in remedies]
    _, *lines = in_flags(SpecError(found, "x")).splitlines()
    said = [line.partition("is 2. ")[2] for line in lines]
    assert said == ["Write 1. [type]", "Remove it. [type]"]


NAMES = ("Y", "off", "1e3", "0x10", "null", "~", "1.0", '""', '"1.0"', '"Y"', '"8b"', '"llama.3"')
"""What YAML reads as something else, and strings that are no name of a serving."""


@for_each("name, source", product(NAMES, ("leaderworkerset", "kthena", "deployment")))
def test_a_name_that_is_none(name: str, source: str, command: Command, tmp_path: Path) -> None:
    body = yaml.safe_load(bases()[source].read_text())
    body["metadata"]["name"] = "NAME"
    file = tmp_path / "serving.yaml"
    file.write_text(yaml.safe_dump(body).replace("NAME", name))
    target = "lws" if source == "kthena" else "kthena"
    lines = [line for line in told(command, file, target) if "name: " in line or ": 1 pro" in line]
    read = yaml.safe_load(name)
    assert read == "" or isinstance(read, str) or f"{body['kind']} without a name" in lines[0]
    change = re.search(r"--set ('.*'|\".*\"|\S+?)\.? \[", lines[-1])
    assert change, lines
    left = told(command, file, target, "--set", *shlex.split(change[1]))
    assert not any("name: " in line for line in left), (lines, left)
