"""The schema for a private registry: Pulumi accepts it, and answers without an account as shown."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.engine import STATE_VARIABLES, environment
from tests.support.pages import ROOT, block
from toolchain.registry_schema import publishable

pytestmark = pytest.mark.programs
PAGE = "docs/languages.md"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(publishable("https://github.com/acme/kthena_components")))
    return path


def pulumi(schema: Path, command: str, **more: str) -> tuple[int, str]:
    """Run a command of the page without an account."""
    words = command.replace("dist/schema.json", str(schema)).split()
    own = {**environment(), **STATE_VARIABLES, "PULUMI_HOME": str(schema.parent)}
    own.pop("PULUMI_BACKEND_URL", None)
    ran = subprocess.run(
        words, cwd=ROOT, env={**own, **more}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


def test_pulumi_accepts_the_schema_and_publishes_only_with_an_account(schema: Path) -> None:
    *_, check, login, publish = block(PAGE, 'eval "$(make -s env)"').splitlines()
    assert login == "pulumi login"
    assert pulumi(schema, check) == (0, "")
    status, answer = pulumi(schema, publish)
    assert (status != 0, answer) == (True, block(PAGE, "error: PULUMI_ACCESS_TOKEN"))
    folder = f"file://{schema.parent}"
    status, answer = pulumi(schema, publish, PULUMI_BACKEND_URL=folder)
    assert (status != 0, answer) == (True, block(PAGE, "error: failed to get the Private Registry"))
