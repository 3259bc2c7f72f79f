"""The SDKs for .NET and Java, as Pulumi's own generators write them from the committed schema.

Nothing compiles them: neither compiler is among the tools of this repository.
"""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from kthena_components.languages import schema_text
from tests.pulumi.languages import variables
from tests.support.engine import STATE_VARIABLES, environment
from tests.support.programs import program
from tests.toolchain.test_site_examples import kinds, shown

pytestmark = pytest.mark.programs
SCHEMA: dict[str, Any] = json.loads(schema_text())
COMPONENTS = {token.rpartition(":")[2] for token in SCHEMA["resources"]}
ENUMS = {token.rpartition(":")[2]: each["enum"] for token, each in SCHEMA["types"].items()
         if "enum" in each}  # fmt: skip
OBJECTS = {token.rpartition(":")[2]: each["properties"] for token, each in SCHEMA["types"].items()
           if "properties" in each}  # fmt: skip


@pytest.fixture(scope="module")
def logo() -> Iterator[str]:
    """Serve the picture that the generator of .NET fetches: no test asks another machine."""

    class Picture(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Picture)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/logo.png"
    server.shutdown()
    server.server_close()


def generated(language: str, logo: str, folder: Path) -> dict[str, str]:
    """Generate an SDK, and give its files by name without the ending."""
    host = Path(program(f"pulumi-language-{language}"))
    schema = folder / "schema.json"
    schema.write_text(json.dumps({**SCHEMA, "logoUrl": logo}))
    found = variables()
    own = {**environment(), **STATE_VARIABLES, **found, "PATH": f"{host.parent}:{found['PATH']}"}
    words = ("package", "gen-sdk", str(schema), "--language", language, "--out", str(folder))
    ran = subprocess.run(
        ["pulumi", *words], env=own, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    files = [*folder.rglob("*.cs"), *folder.rglob("*.java")]
    return {path.stem: path.read_text() for path in files}


def test_dotnet_has_every_component_field_and_word(logo: str, tmp_path: Path) -> None:
    files = generated("dotnet", logo, tmp_path)
    for name in COMPONENTS:
        assert f"public partial class {name} : global::Pulumi.ComponentResource" in files[name]
        fields = SCHEMA["resources"][f"kthena:index:{name}"]["inputProperties"]
        assert set(fields) == set(re.findall(r'\[Input\("(\w+)"', files[name])), name
    for name, words in ENUMS.items():
        assert f"readonly struct {name} :" in files["Enums"]
        for word in words:
            assert f'new {name}("{word["value"]}")' in files["Enums"]
    for name, fields in OBJECTS.items():
        text = files[f"{name}Args"]
        assert set(fields) == set(re.findall(r'\[Input\("(\w+)"', text)), name
    for name in kinds():
        used = [line.partition(" =")[0] for line in shown(name)["C#"]]
        made = files.get(f"{name}Args", files.get(name, ""))
        assert [one for one in used if not re.search(rf"public .* {one}\b", made)] == [], name


def test_java_has_every_component_field_and_word(logo: str, tmp_path: Path) -> None:
    files = generated("java", logo, tmp_path)
    for name in COMPONENTS:
        assert f"public class {name} extends com.pulumi.resources.ComponentResource" in files[name]
        fields = SCHEMA["resources"][f"kthena:index:{name}"]["inputProperties"]
        assert set(fields) == set(re.findall(r'@Import\(name="(\w+)"', files[f"{name}Args"])), name
    for name, words in ENUMS.items():
        assert f"public enum {name} {{" in files[name]
        written = re.findall(r'^ +\w+\("(.*)"\)[,;]$', files[name], re.MULTILINE)
        assert {each["value"] for each in words} == set(written), name
    for name, fields in OBJECTS.items():
        assert set(fields) == set(re.findall(r'@Import\(name="(\w+)"', files[f"{name}Args"])), name
    for name in kinds():
        used = [line[1 : line.index("(")] for line in shown(name)["Java"]]
        made = files[f"{name}Args"]
        assert [one for one in used if f"public Builder {one}(" not in made] == [], name
