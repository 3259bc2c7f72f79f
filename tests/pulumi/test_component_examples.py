"""The example of each component in the schema: its languages agree, compile and run.

Those in C# are from Pulumi's own generator, corrected by the types of the SDK: no compiler is here.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kthena_components.languages import read_schema
from tests.pulumi.languages import compiled, example, in_yaml, install, missing, variables
from tests.support.engine import ROOT, STATE_VARIABLES, Stack, environment
from tests.support.programs import program
from tests.support.shared import Shared

pytestmark = pytest.mark.programs
COMPONENTS = [token.rpartition(":")[2] for token in read_schema()["resources"]]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>app</groupId><artifactId>app</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>com.pulumi</groupId><artifactId>pulumi</artifactId><version>1.16.3</version>
    </dependency>
    <dependency>
      <groupId>com.google.code.findbugs</groupId><artifactId>jsr305</artifactId>
      <version>3.0.2</version>
    </dependency>
  </dependencies>
</project>
"""
SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a virtual machine that ends soon: half of the processor time was its own compiler."""
SCHEMA = ROOT / "kthena_components" / "provider" / "schema.json"


def shown(component: str, language: str) -> str:
    """Return the example of a component in a language."""
    description = read_schema()["resources"][f"kthena:index:{component}"]["description"]
    (only,) = re.findall(rf"^```{language}\n(.*?)^```$", description, re.DOTALL | re.MULTILINE)
    return str(only)


@pytest.fixture(scope="module", name="found")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return install(tmp_path_factory.mktemp("home"))


Make = Callable[[str], Stack]


@pytest.fixture(scope="module", name="project")
def installed_projects(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, str], shared: Shared
) -> Make:
    """Install the packages of a language's example, in place of which others are compiled."""
    made: dict[str, Stack] = {}

    def project(language: str) -> Stack:
        if why := missing(language):
            pytest.skip(why)
        if language not in made:
            made[language] = example(language, tmp_path_factory.mktemp(language), found, shared)
        return made[language]

    return project


def test_typescript_compiles(project: Make) -> None:
    """Compile all at once: the compiler reads the SDK only once. Each file is a module."""
    stack = project("typescript")
    file = stack.project / "tsconfig.json"
    settings = json.loads(file.read_text())
    settings["files"] = [f"{component}.ts" for component in COMPONENTS]
    file.write_text(json.dumps(settings))
    for component in COMPONENTS:
        program = shown(component, "typescript")
        assert re.search("^import ", program, re.MULTILINE), f"{component} is a script, no module"
        (stack.project / f"{component}.ts").write_text(program)
    assert compiled(stack) == ""


def test_go_compiles(project: Make) -> None:
    """Examine all at once, each in a folder of its own."""
    stack = project("go")
    (stack.project / "main.go").unlink()
    for component in COMPONENTS:
        folder = stack.project / "examples" / component
        folder.mkdir(parents=True)
        (folder / "main.go").write_text(shown(component, "go"))
    done = subprocess.run(
        ["go", "vet", "./examples/..."], cwd=stack.project, env=stack.variables,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("component", COMPONENTS)
def test_yaml_runs(component: str, tmp_path: Path, found: dict[str, str]) -> None:
    if why := missing("yaml"):
        pytest.skip(why)
    program = yaml.safe_load(shown(component, "yaml"))
    run = in_yaml(tmp_path, found, program["resources"]).preview()
    run.require()
    assert f"kthena:index:{component}" in run.text


def test_pulumi_finds_no_fault_in_the_schema() -> None:
    variables = {**environment(), **STATE_VARIABLES}
    done = subprocess.run(
        ["pulumi", "schema", "check", str(SCHEMA)],
        env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_pulumi_finds_faults(tmp_path: Path) -> None:
    """Prove that the check above can fail."""
    broken = json.loads(SCHEMA.read_text())
    del broken["types"]["kthena:index:Engine"]
    (tmp_path / "schema.json").write_text(json.dumps(broken))
    variables = {**environment(), **STATE_VARIABLES}
    done = subprocess.run(
        ["pulumi", "schema", "check", str(tmp_path / "schema.json")],
        env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0


def test_java_compiles(tmp_path: Path) -> None:
    """Compile the generated SDK and the examples at once, with the libraries that Maven fetches."""
    for name in ("javac", "mvn"):
        if shutil.which(name) is None:
            pytest.skip(f"not found: {name}")
    (tmp_path / "pom.xml").write_text(POM)
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libraries"]
    fetched = subprocess.run(
        copy, cwd=tmp_path, env={"MAVEN_OPTS": " ".join(SHORT), **os.environ},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if fetched.returncode != 0:
        pytest.skip(f"Maven cannot fetch Pulumi's library: {fetched.stdout[:300]}")
    made = sdk("java", tmp_path / "sdk")
    for component in COMPONENTS:
        # Each has the same class, so each gets another package.
        head, package, rest = shown(component, "java").partition("package app;\n")
        assert (head, bool(package)) == ("", True), component
        (tmp_path / component).mkdir()
        text = f"package app.{component.lower()};\n{rest}"
        (tmp_path / component / "App.java").write_text(text)
    sources = [*made.rglob("*.java"), *tmp_path.glob("*/App.java")]
    javac(tmp_path, "libraries/*", *map(str, sources))


def sdk(language: str, folder: Path) -> Path:
    """Generate an SDK without its logo, which the generator of .NET would fetch."""
    host = Path(program(f"pulumi-language-{language}"))
    found = variables()
    own = {**environment(), **STATE_VARIABLES, **found, "PATH": f"{host.parent}:{found['PATH']}"}
    words = ("package", "gen-sdk", str(SCHEMA), "--language", language, "--out", str(folder))
    subprocess.run(["pulumi", *words], env=own, capture_output=True, check=True)
    return folder


def javac(folder: Path, libraries: str, *sources: str) -> None:
    """Compile, and fail with what the compiler says."""
    command = [
        "javac",
        *(f"-J{word}" for word in SHORT),
        "-nowarn",
        "-cp",
        libraries,
        "-d",
        "classes",
        *sources,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
