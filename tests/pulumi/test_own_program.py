"""docs/own-program.md, followed by a new user in a folder beside the checkout.

pip installs the built wheel without network: its libraries are those of this environment.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

from kthena_components import ModelServing
from kthena_components.resources import _access
from tests.resources.test_provider_release import SAID
from tests.support.checkout import checkout
from tests.support.engine import ROOT, STATE_VARIABLES, Stack, environment
from tests.support.follow import follow
from tests.support.pages import block, steps
from tests.support.recorder import attempt
from tests.support.shells import Bash
from tests.support.wheel import build, libraries

pytestmark = pytest.mark.programs
PAGE = (ROOT / "docs" / "own-program.md").read_text()
ADDED = "an unhandled error occurred"
PODS: Any = {
    "name": "serve",
    "resources": {"gpus_per_pod": 1},
    "engine": {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
    },
}
MISSPELT: Any = {**PODS, "overlay": {"spec": {"node_selector": {"pool": "gpu"}}}}
WITHOUT_NETWORK = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put a checkout with its wheel where the page expects it."""
    made = tmp_path_factory.mktemp("user")
    build(checkout(made / "kthena_components") / "dist")
    (made / "state").mkdir()
    return made


@pytest.fixture(scope="module")
def project(folder: Path) -> Path:
    """Follow the page, as somebody who has Pulumi and is logged in. Give the new project."""
    own = {
        "PATH": f"{Path(sys.executable).parent}:{environment()['PATH']}",
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_SKIP_CONFIRMATIONS": "true",
        "PYTHONPATH": str(libraries(folder / "libraries")),
    }
    variables = {**os.environ, **environment(), **STATE_VARIABLES, **WITHOUT_NETWORK, **own}
    with Bash(folder, variables) as bash:
        follow("docs/own-program.md", bash, folder / "chat")
    return folder / "chat"


@pytest.fixture
def newcomer(folder: Path, project: Path) -> Iterator[Bash]:
    """Open the terminal of somebody without Pulumi, in the project."""
    path = [each for each in os.environ["PATH"].split(":") if not Path(each, "pulumi").exists()]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PULUMI_")}
    own = {"PATH": ":".join(path), "PYTHONPATH": str(libraries(folder / "libraries"))}
    with Bash(project, {**kept, **WITHOUT_NETWORK, **own}) as bash:
        yield bash


def test_the_page_can_be_followed(project: Path) -> None:
    own = project / ".venv" / "lib"
    assert list(own.glob("python*/site-packages/kthena_components/policies/pack.py"))


def test_the_pulumi_of_the_checkout_works_with_a_state_of_ones_own(newcomer: Bash) -> None:
    """The last block of the page is all that somebody without Pulumi needs, after the first one."""
    assert newcomer.run("command -v pulumi") == (1, "")
    commands = [step.command for step in steps("docs/own-program.md")]
    last = commands[next(at for at, each in enumerate(commands) if each.startswith("eval")) :]
    for command in (*last, "pulumi stack init mine", "pulumi preview --non-interactive"):
        status, printed = newcomer.run(command)
        assert status == 0, f"{command}\n{printed}"
    assert "kthena:index:ModelServing" in printed


def test_the_program_is_the_one_of_the_readme() -> None:
    assert block("README.md", "import pulumi\n") == block("docs/own-program.md", "import pulumi\n")


def test_a_program_can_avoid_the_line_after_a_refusal(tmp_path: Path) -> None:
    """Without the lines of the page, Pulumi adds its own; with them, it does not."""
    stack = Stack.make(ROOT / "examples" / "ten-lines", "dev", tmp_path)
    program = block("docs/own-program.md", "import pulumi\n").replace('"port": 80', '"port": 0')
    caught = block("docs/own-program.md", "import sys\n").replace('"port": 80', '"port": 0')
    head, _, rest = program.partition("chat = ")
    main = stack.project / "__main__.py"
    main.write_text(f"{head}chat = {rest}")
    plain = stack.preview()
    main.write_text(f"{head}{caught}{rest.partition(chr(10))[2]}")
    better = stack.preview()
    for run in (plain, better):
        assert run.code != 0
        assert "expose.port: is 0" in run.text
        assert "Traceback" not in run.text
    assert [ADDED in run.text for run in (plain, better)] == [True, False]


REFUSALS: dict[str, Callable[[], object]] = {
    "ModelServing 'chat' is refused: 1 problem\n  roles": lambda: ModelServing(
        "chat", {"roles": [MISSPELT]}
    ),
    "ModelServing 'chat' is refused: 1 problem\n  opts": lambda: ModelServing(
        "chat", {"roles": [PODS]}, pulumi.ResourceOptions(ignore_changes=["roles"])
    ),
    "ModelServing 'other' is refused": lambda: [
        ModelServing("chat", {"roles": [PODS]}),
        ModelServing("other", {"name": "chat", "roles": [PODS]}),
    ],
}


@pytest.mark.parametrize("start", REFUSALS)
def test_the_page_quotes_the_refusals(start: str) -> None:
    assert f"{attempt(REFUSALS[start]).error}\n" == block("docs/own-program.md", start)


def test_the_page_quotes_the_warning_and_the_tested_release() -> None:
    assert f"```\n{SAID}\n```" in PAGE
    assert f"with the newest one and with {_access.TESTED};" in PAGE
    assert f"pip install '{_access.REQUIREMENT}'" in PAGE
