"""Commands of init containers that never end, for init_container_ends."""

import pytest

from kthena_components.core.engines.shapes import never_ends


@pytest.mark.parametrize(
    ("line", "never"),
    [
        ("vllm serve m", True),
        ("/usr/bin/vllm serve m", True),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", True),
        ("trtllm-serve m", True),
        ("vllm bench serve", False),
        ("vllm serve --help", False),
        ("timeout 60 vllm serve m", False),
        ("bash -c vllm", False),
        ("ray start --head", False),
        ("hf download m", False),
    ],
)
def test_a_server_itself_never_ends(line: str, *, never: bool) -> None:
    assert never_ends(line.split()) is never
