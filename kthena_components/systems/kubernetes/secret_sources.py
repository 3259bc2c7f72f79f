"""Objects whose controllers create a Secret, or add keys to one that exists.

Source: the CRDs of External Secrets, Sealed Secrets,
Vault Secrets Operator, 1Password Connect, Infisical, Doppler, the Secrets Store CSI
driver and cert-manager; the annotations of Reflector (emberstack/kubernetes-reflector) and of
kubernetes-replicator (mittwald).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.read import mapping, name_of, pairs, sequence

_DESTINATION = ("destination", "name")
_NAMES: Mapping[GroupKind, tuple[str, ...]] = {
    ("external-secrets.io", "ExternalSecret"): ("target", "name"),
    ("bitnami.com", "SealedSecret"): ("template", "metadata", "name"),
    ("secrets.hashicorp.com", "VaultStaticSecret"): _DESTINATION,
    ("secrets.hashicorp.com", "VaultDynamicSecret"): _DESTINATION,
    ("secrets.hashicorp.com", "VaultPKISecret"): _DESTINATION,
    ("onepassword.com", "OnePasswordItem"): (),
    ("secrets.infisical.com", "InfisicalSecret"): ("managedSecretReference", "secretName"),
    ("secrets.doppler.com", "DopplerSecret"): ("managedSecret", "name"),
    ("cert-manager.io", "Certificate"): ("secretName",),
    ("secrets-store.csi.x-k8s.io", "SecretProviderClass"): ("secretObjects",),
}
"""By kind, where its spec states the name of the Secret. Without one, it is that of the object."""
SOURCES: tuple[GroupKind, ...] = tuple(_NAMES)
_COPIES = ("reflector.v1.k8s.emberstack.com/reflects", "replicator.v1.mittwald.de/replicate-from")


def filled_names(found: Object) -> Iterator[object]:
    """Yield the names of the Secrets that an object's controller fills; they may be unknown."""
    part: Any = found.spec
    path = _NAMES[found.group_kind]
    for key in path:
        part = mapping(part).get(key)
    if isinstance(part, list | tuple):
        yield from (mapping(item).get("secretName") for item in sequence(part))
    else:
        yield name_of(found.body) if part is None or not path else part


def is_copied(secret: Object) -> bool:
    """Return whether a controller copies the keys of another Secret into this one."""
    annotations = mapping(secret.metadata.get("annotations"))
    return any(key in _COPIES for key, _ in pairs(annotations))
