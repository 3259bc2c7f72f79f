"""The templates on the real engine, as an installed wheel writes them and as `pulumi new` does."""

import subprocess
from pathlib import Path

import pytest

from kthena_components.cli.new import LANGUAGES
from tests.pulumi.languages import files_of, install, missing
from tests.support.engine import ROOT, STATE_VARIABLES, Stack, environment
from tests.support.shared import Shared
from tests.support.wheel import Venv
from tests.support.wheel import install as install_wheel

pytestmark = pytest.mark.programs
OTHERS = [language for language in LANGUAGES if language != "python"]
RENDER = {"kubernetes:renderYamlToDirectory": "rendered"}
OBJECTS = 6


@pytest.fixture(scope="module", name="venv")
def installed_wheel(shared: Shared, wheel: Path) -> Venv:
    made = shared("wheel-of-templates", lambda folder: install_wheel(wheel, folder / "venv"))
    return Venv(made / "venv")


@pytest.fixture(scope="module", name="found")
def installed_provider(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return install(tmp_path_factory.mktemp("home"))


def python_stack(venv: Venv, name: str, folder: Path, *words: str) -> Stack:
    """Write a project with the installed command, and make a stack that runs the wheel."""
    written = venv.run("kthena-components", "new", "written", "--name", "chat", *words, cwd=folder)
    assert written.returncode == 0, written.stderr
    stack = Stack.make(folder / "written", name, folder)
    (stack.project / ".venv").symlink_to(venv.folder)
    settings = stack.project / "Pulumi.yaml"
    settings.write_text((folder / "written" / "Pulumi.yaml").read_text())
    del stack.variables["PYTHONPATH"]
    return stack


def test_the_wheel_writes_a_python_project_that_renders(venv: Venv, tmp_path: Path) -> None:
    stack = python_stack(venv, "dev", tmp_path)
    stack.up().require()
    assert len(files_of(stack)) == OBJECTS
    assert stack.outputs == {"endpoint": "http://chat.default.svc:80"}
    assert stack.preview("--expect-no-changes").code == 0


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_each_stack_passes_the_pack_of_its_environment(
    name: str, venv: Venv, tmp_path: Path
) -> None:
    stack = python_stack(venv, name, tmp_path, "--with", "ci")
    stack.change(lambda config: config.pop("kubernetes:context", None))  # for files, none applies
    stack.change(lambda config: config.update(RENDER))
    levels = f"policies/levels/{name}.json"
    run = stack.preview("--policy-pack", "policies", "--policy-pack-config", levels)
    run.require()
    assert "kthena-components@v" in run.text
    assert "mandatory" not in run.text
    main = stack.project / "__main__.py"
    main.write_text(main.read_text().replace('"pipeline": 2', '"pipeline": 3'))
    assert "[world-size-equals-gpus]" in stack.preview().text


@pytest.mark.parametrize("language", OTHERS)
def test_another_language_renders_the_same(
    language: str, venv: Venv, tmp_path: Path, found: dict[str, str]
) -> None:
    if why := missing(language):
        pytest.skip(why)
    words = ("kthena-components", "new", "written", "--name", "chat", "--language", language)
    assert venv.run(*words, cwd=tmp_path).returncode == 0
    stack = Stack.make(tmp_path / "written", "dev", tmp_path, found)
    if language == "typescript":
        stack.pulumi("install").require()
    stack.up().require()
    (tmp_path / "python").mkdir()
    same = python_stack(venv, "dev", tmp_path / "python")
    same.up().require()
    assert files_of(stack) == files_of(same)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pulumi_new_takes_the_same_folder(
    language: str, venv: Venv, tmp_path: Path, found: dict[str, str]
) -> None:
    if language != "python" and (why := missing(language)):
        pytest.skip(why)
    template = str(ROOT / "templates" / language)
    words = ("new", "--offline", "--generate-only", "--yes", "--name", "chat", "--dir", "made")
    variables = {**environment(), **STATE_VARIABLES, **found}
    ran = subprocess.run(
        ["pulumi", *words, template],
        cwd=tmp_path, env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    ours = ("kthena-components", "new", "ours", "--name", "chat", "--language", language)
    assert venv.run(*ours, cwd=tmp_path).returncode == 0
    made, own = tmp_path / "made", tmp_path / "ours"
    assert {path.name for path in made.iterdir()} == {path.name for path in own.iterdir()}
    differ = {path.name for path in own.iterdir()
              if path.read_text() != (made / path.name).read_text()}  # fmt: skip
    assert differ == {"Pulumi.yaml", "requirements.txt"}
