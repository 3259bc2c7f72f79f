"""What `kv_transfer.py` writes is read as the argument that it was written for."""

from itertools import product
from typing import Any

import pytest

from kthena_components.core.engines import Transfer, read_command
from kthena_components.core.engines.kv_transfer import read_transfer, transfer_env, transfer_words
from tests.support.for_each import for_each

ROLES = ("prefill", "decode", "both")
SENT = [
    *product(("vllm",), ROLES, ("nixl", "mooncake", "lmcache"), (None, 7000)),
    *product(("sglang",), ROLES[:2], ("nixl", "mooncake"), (None, 7000)),
]
STARTS = {
    "vllm": ("vllm", "serve", "org/m"),
    "sglang": ("python3", "-m", "sglang.launch_server", "--model-path", "org/m"),
}
HOST = {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "value": "10.0.0.1"}
SIZES = {"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_buffer_size": 1}
NIXL = {key: value for key, value in SIZES.items() if key != "kv_buffer_size"}


@for_each(("kind", "role", "connector", "port"), SENT)
def test_what_is_written_is_read(kind: str, role: str, connector: str, port: int | None) -> None:
    transfer = Transfer(role=role, connector=connector, port=port)
    words, env = transfer_words(kind, transfer), transfer_env(kind, transfer)
    command = read_command([*STARTS[kind], *words], {})
    assert command is not None
    other = {"name": "OTHER", "value": "1"}

    found = read_transfer(kind, command.options, [other, *env])

    assert found is not None
    said, variables = found
    # Some connectors have no port, and then none comes back.
    assert transfer_words(kind, said) == words
    assert variables == transfer_env(kind, said) == env
    assert (said.role, said.connector) == (role, connector)
    assert said.port == (port if "7000" in str((words, env)) else None)


@pytest.mark.parametrize(
    ("kind", "options", "env"),
    [
        ("vllm", {}, []),
        ("vllm", {"--kv-transfer-config": SIZES}, []),
        ("vllm", {"--kv-transfer-config": NIXL}, []),
        ("vllm", {"--kv-transfer-config": NIXL}, [HOST]),
        ("vllm", {"--kv-transfer-config": "{"}, []),
        ("sglang", {"--disaggregation-mode": "prefill"}, []),
        ("trtllm", {"--kv-transfer-config": NIXL}, []),
    ],
)
def test_other_settings_are_no_argument(
    kind: str, options: dict[str, Any], env: list[dict[str, Any]]
) -> None:
    assert read_transfer(kind, options, env) is None
