"""The commands of the README for a checkout: make up, a refusal, and plain Pulumi after make env.

They show no prompt, because one copies them; what begins with `$` is run by tests/pages.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from tests.support.checkout import checkout, terminal
from tests.support.engine import ROOT
from tests.support.pages import block
from tests.support.shells import Bash

pytestmark = pytest.mark.programs
README, STACKS = ((ROOT / page).read_text() for page in ("README.md", "docs/stacks.md"))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Bash]:
    """Open a terminal in a checkout with the policies."""
    folder = checkout(tmp_path / "kthena_components")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "policies", folder / "policies", ignore=ignored)
    with terminal(folder) as bash:
        yield bash


def test_the_readme_can_be_followed(shell: Bash) -> None:
    def ran(command: str) -> str:
        status, printed = shell.run(command)
        assert status == 0, f"{command}\n{printed}"
        return printed

    (up,) = block("README.md", "make up").splitlines()
    assert indent(block("README.md", "1 serving, 2 pods, 2 GPUs:"), "    ") in ran(up)
    assert "    11 unchanged\n" in ran(up)
    assert "`11 unchanged`" in README
    ran("sed -i 's/pipeline: 2/pipeline: 3/' stacks/Pulumi.dev.yaml")
    status, refused = shell.run(up)
    assert status != 0
    assert block("README.md", "error: stack 'dev' is refused").removeprefix("error: ") in re.sub(
        r"(?m)^ {4}(?:error: )?", "", refused
    )
    assert block("README.md", "eval ") == block("docs/stacks.md", "eval ")
    env, preview, _ = block("README.md", "eval ").splitlines()
    (made,) = re.findall(r"`(make preview STACK=staging)` makes", README)
    ran(made)
    ran(env)
    assert "kthena:index:ModelServing" in ran(preview)
    (prod,) = re.findall(r"`(pulumi stack init prod)`", STACKS)
    ran(prod)
    (token,) = re.findall(r"`(pulumi config set --secret hf_token .*?)`", STACKS)
    ran(f"{token} hf_of-the-test")
    (policies,) = block("README.md", "pulumi preview --stack staging --policy-pack").splitlines()
    _, checked = shell.run(policies)
    assert re.search(r"kthena-components@v\d", checked), checked
    assert "Traceback" not in checked
