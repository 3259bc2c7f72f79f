"""What `convert` says about arguments that a target rejects works as it is written."""

import re
from itertools import product
from pathlib import Path

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
