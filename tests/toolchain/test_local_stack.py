"""`make up` must leave the checkout as it was."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.local_stack import committed_config, shell_variables, state_variables, with_salt
from toolchain.programs import ROOT, ToolchainError

COMMITTED = "config:\n  trial:word: hello\n"
PROGRAM = 'import pulumi\n\npulumi.export("word", pulumi.Config("trial").require("word"))\n'
UP = """
import sys
from pathlib import Path
from toolchain import local_stack
local_stack.ROOT = Path(sys.argv[1])
local_stack.run("up", "dev", ["--color", "never"], print)
"""


VARIABLES = """
import json
import os
import sys
from pathlib import Path
from toolchain import local_stack
local_stack.ROOT = Path(sys.argv[1])
print(json.dumps(local_stack.shell_variables(os.environ, lambda _: None)))
"""


def test_a_salt_is_added_to_a_file_without_one() -> None:
    assert with_salt("config:\n  a: 1\n\n", "encryptionsalt: v1:x") == (
        "config:\n  a: 1\nencryptionsalt: v1:x\n"
    )


def test_a_salt_of_the_users_own_is_kept() -> None:
    own = "encryptionsalt: v1:own\nconfig: {}\n"
    assert with_salt(own, "encryptionsalt: v1:x") == own


def test_an_empty_stack_file_gets_its_salt() -> None:
    assert with_salt("", "encryptionsalt: v1:x") == "encryptionsalt: v1:x\n"


def test_a_passphrase_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    file = Path(state_variables(tmp_path, {})["PULUMI_CONFIG_PASSPHRASE_FILE"])
    made = file.read_text()
    assert state_variables(tmp_path, {})["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(file)
    assert (len(made), file.read_text()) == (32, made)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"])
def test_a_passphrase_that_the_user_has_set_is_kept(name: str, tmp_path: Path) -> None:
    variables = state_variables(tmp_path, {name: ""})
    assert not any("PASSPHRASE" in variable for variable in variables)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_stack_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    for stack in ("prod", "dev"):
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").touch()
    with pytest.raises(
        ToolchainError, match=r"^there is no stack 'dve'\. The stacks are: dev, prod\.$"
    ):
        committed_config(tmp_path, "dve")


def checkout(folder: Path) -> Path:
    project = folder / "a checkout"
    (project / "stacks").mkdir(parents=True)
    (project / "stacks" / "Pulumi.dev.yaml").write_text(COMMITTED)
    (project / "Pulumi.yaml").write_text("name: trial\nruntime: python\nstackConfigDir: stacks\n")
    (project / "__main__.py").write_text(PROGRAM)
    return project


def environment() -> dict[str, str]:
    own = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")
    kept = {name: value for name, value in os.environ.items() if name not in own}
    return kept | {"PULUMI_PYTHON_CMD": sys.executable}


def output(code: str, project: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, str(project)],
        cwd=ROOT,
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.programs
def test_a_stack_goes_up_twice_and_its_committed_file_stays_as_it_was(tmp_path: Path) -> None:
    project = checkout(tmp_path)

    shown = [output(UP, project) for _ in range(2)]

    assert re.search(r'word: "hello"\n\nResources:\n +\+ 1 created', shown[0])
    assert re.search(r"Resources:\n +1 unchanged", shown[1])
    assert (project / "stacks" / "Pulumi.dev.yaml").read_text() == COMMITTED
    # Python writes compiled modules unless its environment forbids it.
    assert {path.name for path in project.iterdir()} - {"__pycache__"} == {
        *(".state", "Pulumi.yaml", "__main__.py", "stacks")
    }


@pytest.mark.programs
def test_plain_pulumi_finds_the_stacks_of_make_up(tmp_path: Path) -> None:
    project = checkout(tmp_path)
    variables = environment() | json.loads(output(VARIABLES, project))

    def pulumi(*arguments: str) -> str:
        of = [] if "ls" in arguments else ["--stack", "dev"]
        command = ["pulumi", *arguments, *of, "--non-interactive", "--color", "never"]
        return subprocess.run(
            command, cwd=project, env=variables, check=True, capture_output=True, text=True
        ).stdout

    assert pulumi("stack", "ls", "--json").strip() == "[]", "the variables make no stack"
    pulumi("stack", "init")
    assert "1 to create" in pulumi("preview")
    (project / "stacks" / "Pulumi.dev.yaml").write_text(COMMITTED)
    assert "1 created" in output(UP, project), "also without the salt that Pulumi wrote"
    assert "1 unchanged" in pulumi("up", "--yes")
    pulumi("config", "set", "--secret", "key", "hidden")
    assert pulumi("config", "get", "key") == "hidden\n"
    assert "1 unchanged" in output(UP, project), "the file has a key of its own now"
    assert json.loads(output(VARIABLES, project)).items() <= variables.items()


@pytest.mark.parametrize("chosen", ["PULUMI_BACKEND_URL", "credentials"])
def test_a_backend_of_the_users_own_is_kept(chosen: str, tmp_path: Path) -> None:
    environ = {"PULUMI_HOME": str(tmp_path)}
    if chosen == "credentials":
        (tmp_path / "credentials.json").write_text('{"current": "s3://team"}')
    else:
        environ[chosen] = "s3://team"
    assert shell_variables(environ, pytest.fail) == {}


def test_the_state_has_no_side_files_that_a_killed_engine_leaves_half_written(
    tmp_path: Path,
) -> None:
    assert state_variables(tmp_path, {})["PULUMI_BACKEND_URL"].endswith("?metadata=skip")
