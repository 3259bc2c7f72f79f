"""The pack as a process of its own: started and spoken to as the engine does it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import analyzer_pb2 as messages
from pulumi.runtime.proto import analyzer_pb2_grpc as services

from tests.support.engine import ROOT

PACK = ROOT / "policies"
NO_ENGINE = "127.0.0.1:1"
SECONDS = 120


class Pack:
    """A started pack."""

    def __init__(self, port: int) -> None:
        """Connect to it."""
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.analyzer = services.AnalyzerStub(self.channel)

    def info(self) -> Any:
        """Ask what policies there are."""
        return self.analyzer.GetAnalyzerInfo(empty_pb2.Empty(), timeout=SECONDS)

    def configure_stack(self, config: Mapping[str, str], secrets: Sequence[str] = ()) -> None:
        """Send the config of the stack, and which of its keys are secret."""
        request = messages.AnalyzerStackConfigureRequest(
            stack="test", project="chat", config=config, config_secret_keys=secrets
        )
        self.analyzer.ConfigureStack(request, timeout=SECONDS)

    def configure(self, config: Mapping[str, str | Mapping[str, Any]]) -> None:
        """Configure policies, as a file of policies/levels does it: a level, or a map with more."""
        request = messages.ConfigureAnalyzerRequest()
        for name, stated in config.items():
            fields = {"enforcementLevel": stated} if isinstance(stated, str) else dict(stated)
            number = messages.EnforcementLevel.Value(fields.pop("enforcementLevel").upper())
            request.policyConfig[name].enforcementLevel = number
            request.policyConfig[name].properties.update(fields)
        self.analyzer.Configure(request, timeout=SECONDS)

    def analyze(self, resource_type: str, props: Mapping[str, Any]) -> list[str]:
        """Hand over one resource; give level, policy and message of each line."""
        request = messages.AnalyzeRequest(
            type=resource_type, properties=_struct(props), urn="urn:x::r", name="r"
        )
        return _lines(self.analyzer.Analyze(request, timeout=SECONDS))

    def analyze_stack(self, bodies: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Hand over a stack: URN to type and properties."""
        resources = [
            messages.AnalyzerResource(type=kind, properties=_struct(props), urn=urn, name=urn)
            for urn, (kind, props) in bodies.items()
        ]
        request = messages.AnalyzeStackRequest(resources=resources)
        return _lines(self.analyzer.AnalyzeStack(request, timeout=SECONDS))


def _struct(props: Mapping[str, Any]) -> Any:
    sent = struct_pb2.Struct()
    sent.update(props)
    return sent


def _lines(response: Any) -> list[str]:
    """Write each diagnostic in one line: `mandatory serving-rules urn: message`."""
    return [
        f"{messages.EnforcementLevel.Name(found.enforcementLevel).lower()} {found.policyName} "
        f"{found.urn}: {found.message.removeprefix(found.description).strip()}"
        for found in response.diagnostics
    ]


@contextmanager
def started(
    folder: Path = PACK, gpu: str = "", key: str = "kthena-components:gpu"
) -> Iterator[Pack]:
    """Start the pack in a folder for a stack that names a GPU by a key, or none; and end it."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "pulumi.policy", NO_ENGINE, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        try:
            pack = Pack(int(process.stdout.readline()))
            with pack.channel:
                pack.configure_stack({key: gpu} if gpu else {})
                yield pack
        finally:
            process.terminate()
