"""Keys and certificates: one authority, one pair for the servers, one for the administrator."""

import base64
import secrets
from pathlib import Path

import trustme
import yaml

from sandbox.layout import HOST, Layout

NAMES = (HOST, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def write_pki(layout: Layout) -> None:
    """Write the keys of a new sandbox, and the administrator's kubeconfig."""
    layout.pki("").mkdir()
    authority = trustme.CA(organization_name="kthena-components sandbox")
    server = authority.issue_cert(*NAMES)
    # Without a host name, the certificate has an empty extension, which Go rejects.
    admin = authority.issue_cert(
        "admin.sandbox", common_name="admin", organization_name="system:masters"
    )
    authority.cert_pem.write_to_path(layout.authority)
    for name, pair in (("server", server), ("admin", admin)):
        pair.cert_chain_pems[0].write_to_path(layout.pki(f"{name}.crt"))
        _private(layout.pki(f"{name}.key"), pair.private_key_pem.bytes())
    _private(layout.kubeconfig, kubeconfig(layout, "admin", _credentials(admin)).encode())
    # The API server verifies the signature of a client's certificate again for each request, which
    # is 6 % of its processor time. It looks a token up.
    token = secrets.token_hex()
    _private(layout.pki("tokens.csv"), f'{token},admin,admin,"system:masters"\n'.encode())
    _private(layout.programs, kubeconfig(layout, "admin", {"token": token}).encode())


def _credentials(pair: trustme.LeafCert) -> dict[str, str]:
    return {
        "client-certificate-data": _encoded(pair.cert_chain_pems[0].bytes()),
        "client-key-data": _encoded(pair.private_key_pem.bytes()),
    }


def kubeconfig(layout: Layout, user: str, credentials: dict[str, str]) -> str:
    """Return the kubeconfig of one user of the sandbox, as YAML."""
    cluster = {
        "server": layout.server,
        "certificate-authority-data": _encoded(layout.authority.read_bytes()),
    }
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user}}],
        "current-context": "sandbox",
    }
    return yaml.safe_dump(body, sort_keys=False)


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def _private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read. The mode is set before the content."""
    path.touch(mode=0o600)
    path.write_bytes(content)
