"""`pulumi package add` of the folder `plugin` in a checkout, by the real engine.

Pulumi's own Python host installs requirements.txt into the folder's environment, before it starts
the folder. That host is not among the Go modules, so pip does that here.
"""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.pulumi.languages import EXAMPLES, files_of, missing, without_provider
from tests.support.engine import ROOT, Stack
from tests.support.wheel import install_as

pytestmark = pytest.mark.programs
NEEDED = ("LICENSE", "README.md", "kthena_components", "plugin", "pyproject.toml")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Give the folder in a clone of the repository, as Pulumi prepares it."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in NEEDED:
        ignored = shutil.ignore_patterns("__pycache__", ".venv")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, clone / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, clone / name)
    folder = clone / "plugin"
    settings = yaml.safe_load((folder / "PulumiPlugin.yaml").read_text())
    own = folder / settings["runtime"]["options"]["virtualenv"]
    install_as(own, ["--requirement", "requirements.txt"], folder)
    return folder


def test_a_folder_of_a_clone_is_a_package(plugin: Path, tmp_path: Path) -> None:
    if why := missing("yaml"):
        pytest.skip(why)
    home, source = tmp_path / "home", tmp_path / "source"
    home.mkdir()
    source.mkdir()
    program = yaml.safe_load((EXAMPLES / "yaml" / "Pulumi.yaml").read_text())
    del program["packages"]
    (source / "Pulumi.yaml").write_text(yaml.safe_dump(program))
    stack = Stack.make(source, "dev", tmp_path / "work", without_provider(home))
    del stack.variables["PYTHONPATH"]
    stack.pulumi("package", "add", str(plugin)).require()
    added = yaml.safe_load((stack.project / "Pulumi.yaml").read_text())["packages"]
    assert added == {"kthena": str(plugin)}
    stack.up().require()
    assert len(files_of(stack)) == len(stack.rendered()) == 6
    assert stack.preview("--expect-no-changes").code == 0
