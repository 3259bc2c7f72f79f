"""Checks what pods and routes name: keys of Secrets, and objects. Values are never read."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from kthena_components.core.findings import Finding, advise, not_checked, part_of_rule, suggest
from kthena_components.core.naming import name_slip_of
from kthena_components.core.objects.cluster_objects import ClusterObjects, Key
from kthena_components.core.objects.object import CLAIM, GroupKind, Object, PodSet
from kthena_components.core.remedies import write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    name_of,
    pairs,
    require_known,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import Unknown

# Objects whose controllers create a Secret, or add keys to one that exists.
#
# Source: the CRDs of External Secrets, Sealed Secrets,
# Vault Secrets Operator, 1Password Connect, Infisical, Doppler, the Secrets Store CSI
# driver and cert-manager; the annotations of Reflector (emberstack/kubernetes-reflector) and of
# kubernetes-replicator (mittwald).


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
"""By kind, where its spec states the name of the Secret. Default: the name of the object."""
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


SECRET: GroupKind = ("", "Secret")
_MANY = 20
_LOGINS = {
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    "kubernetes.io/dockercfg": ".dockercfg",
}
_OPAQUE = "Opaque"
_FILLED = {"kubernetes.io/service-account-token": ("token", "ca.crt", "namespace")}
"""Keys that Kubernetes writes into Secrets of a type."""


@dataclass(frozen=True, slots=True)
class _Reference:
    """One key that pods use in a Secret."""

    path: str
    name: object
    key: object
    optional: object
    user: str
    """What does not start without it, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secret:
    """The compared parts of a Secret, read once for all references to it."""

    kind: object
    keys: Mapping[str, None]
    """In their order."""
    gap: Unknown | None
    """Why it may have other keys."""


def secret_key_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """A Secret has every key that pods use.

    The rule compares variables (secretKeyRef), the items of secret and projected volumes, envFrom
    and imagePullSecrets. Secrets that are elsewhere are not checked, nor those that an
    ExternalSecret, a SealedSecret or its like fills, and values are never shown.

    Pass: secretKeyRef hf-token, key token; a Secret hf-token with the key token.
    Fail: secretKeyRef hf-token, key HF_TOKEN; a Secret hf-token with the key token alone.
    Fail: a secret volume whose items name the key config, which its Secret does not have.
    Level: mandatory, except for optional keys; advisory for a Secret without keys in envFrom, and
    for one in imagePullSecrets without a registry login.
    Source: Kubernetes documentation, Secrets; kubernetes pkg/kubelet/kubelet_pods.go
    makeEnvironmentVariables; pkg/volume/secret/secret.go; pkg/credentialprovider/secrets;
    pkg/controller/serviceaccount/tokens_controller.go.
    """
    secrets = {key: _secret(entry) for key, entry in cluster.named(SECRET).items()}
    filled = _filled(cluster)
    secrets = {
        key: secret for key, secret in secrets.items() if filled.isdisjoint({key, key[:1], ()})
    }
    for pods in cluster.pods if secrets else ():
        for reference in (*_variables(pods), *_files(pods)):
            yield from _judge_key(pods, reference, secrets)
        yield from _whole_secrets(pods, secrets)
        yield from _logins(pods, secrets)


def _filled(cluster: ClusterObjects) -> set[tuple[str, ...]]:
    """Return the Secrets that a controller fills; a namespace alone if a name is not known.

    Without a namespace that is known, it may be any Secret: an empty tuple.
    """
    found: set[tuple[str, ...]] = set()
    for source in (one for kind in SOURCES for one in cluster.of(kind)):
        for name in filled_names(source):
            space = () if unknown_in(source.namespace) else (str(source.namespace),)
            is_named = space and isinstance(name, str) and not unknown_in(name)
            found.add((*space, str(name)) if is_named else space)
    copied = (key for key, one in cluster.named(SECRET).items() if is_copied(one))
    return {*found, *copied}


def _containers(pods: PodSet) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("containers", "initContainers"):
        for i, container in enumerate(sequence(pods.spec.get(field))):
            yield f"spec.{field}[{i}]", mapping(container)


def _variables(pods: PodSet) -> Iterator[_Reference]:
    for at, container in _containers(pods):
        for k, item in enumerate(sequence(container.get("env"))):
            taken = mapping(mapping(item).get("valueFrom")).get("secretKeyRef")
            if isinstance(taken, Mapping):
                path = f"{at}.env[{k}].valueFrom.secretKeyRef.key"
                name, key, optional = map(taken.get, ("name", "key", "optional"))
                yield _Reference(path, name, key, optional, "container")


def _files(pods: PodSet) -> Iterator[_Reference]:
    for i, item in enumerate(sequence(pods.spec.get("volumes"))):
        volume, at = mapping(item), f"spec.volumes[{i}]"
        own = mapping(volume.get("secret"))
        yield from _items_of(own, own.get("secretName"), f"{at}.secret")
        for k, source in enumerate(sequence(mapping(volume.get("projected")).get("sources"))):
            part = mapping(mapping(source).get("secret"))
            yield from _items_of(part, part.get("name"), f"{at}.projected.sources[{k}].secret")


def _items_of(source: Mapping[str, Any], name: object, at: str) -> Iterator[_Reference]:
    for k, item in enumerate(sequence(source.get("items"))):
        key = mapping(item).get("key")
        yield _Reference(f"{at}.items[{k}].key", name, key, source.get("optional"), "pod")


@part_of_rule
def _judge_key(
    pods: PodSet, taken: _Reference, secrets: Mapping[Key, _Secret]
) -> Iterator[Finding]:
    """Check that a Secret has the key which a container needs to start."""
    at, name, key = pods.at(taken.path), taken.name, taken.key
    require_known(at, name, key, pods.owner.namespace, taken.optional)
    secret = _find(pods, name, secrets)
    if secret is None or not isinstance(key, str) or taken.optional is True:
        return
    if key in secret.keys:
        return
    require_known(at, secret.gap)
    near = [word for word in islice(secret.keys, _MANY) if not unknown_in(word)]
    yield Finding(
        path=at,
        seen=f"is {display(key)}, but the Secret {display(name)} has no such "
        "key, and the "
        f"{taken.user} does not start without it",
        remedy=suggest(key[:253], near),
    )


def _find(pods: PodSet, name: object, secrets: Mapping[Key, _Secret]) -> _Secret | None:
    known = isinstance(name, str) and isinstance(pods.owner.namespace, str)
    return secrets.get((str(pods.owner.namespace), str(name))) if known else None


def _secret(entry: Object) -> _Secret:
    lists = [entry.body.get(field) for field in ("data", "stringData")]
    words = (word for held in lists for word, _ in pairs(held) if isinstance(word, str))
    kind = entry.body.get("type", _OPAQUE)
    filled = _FILLED.get(kind, ()) if isinstance(kind, str) else ()
    gap = first_unknown(*lists, kind, entry.metadata.get("annotations"))
    return _Secret(kind=kind, keys=dict.fromkeys((*words, *filled)), gap=gap)


def _whole_secrets(pods: PodSet, secrets: Mapping[Key, _Secret]) -> Iterator[Finding]:
    """Report a Secret without keys from which a container takes all variables."""
    for at, container in _containers(pods):
        for k, item in enumerate(sequence(container.get("envFrom"))):
            taken = mapping(mapping(item).get("secretRef"))
            path = pods.at(f"{at}.envFrom[{k}].secretRef.name")
            secret = _find(pods, taken.get("name"), secrets)
            if gap := first_unknown(taken.get("name"), secret and secret.gap):
                yield not_checked(path, gap)
            elif secret is not None and not secret.keys:
                seen = f"is {display(taken.get('name'))}, a Secret without any key, so "
                seen += "the container gets no variable from it"
                yield advise(path, seen, "give the Secret its keys, or name another one")


def _logins(pods: PodSet, secrets: Mapping[Key, _Secret]) -> Iterator[Finding]:
    """Check that a Secret for pulling images has the type and the key of a login."""
    for i, item in enumerate(sequence(pods.spec.get("imagePullSecrets"))):
        name = mapping(item).get("name")
        path = pods.at(f"spec.imagePullSecrets[{i}].name")
        secret = _find(pods, name, secrets)
        kind = _OPAQUE if secret is None else secret.kind
        if gap := first_unknown(item, name, kind, secret and secret.gap):
            yield not_checked(path, gap)
        elif secret is not None and _LOGINS.get(str(kind)) not in secret.keys:
            login = _LOGINS.get(str(kind))
            lacks = f"without the key {login}" if login else "which is not a login"
            seen = (
                f"is {display(name)}, a Secret of type {display(kind)} {lacks}, so images "
                "are pulled "
            )
            remedy = "write type kubernetes.io/dockerconfigjson and the key .dockerconfigjson there"
            yield advise(path, f"{seen}without it", remedy)


SERVICE_ACCOUNT: GroupKind = ("", "ServiceAccount")
_Named = tuple[str, GroupKind, Any]
"""The path of a name in a pod template, the kind, and the name or the map that has it."""


def reference_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """The claims, Secrets and ServiceAccounts that pods name are not misspelled.

    A name is reported if no object has it, and if it differs in one letter, or in two swapped
    letters, from the name of an object of the same kind in the same namespace. Any other name may
    belong to an object in other files, and so may a name that differs in a digit. Optional ones are
    not compared. Without its claim a pod stays Pending, without a Secret its containers do not
    start, and without its ServiceAccount it is not created.

    Pass: claimName models-pvc, and a PersistentVolumeClaim models-pvc; claimName models-2, and one
    models-1.
    Fail: claimName models-pcv, and a PersistentVolumeClaim models-pvc.
    Level: advisory, because an object of that name may be in the cluster.
    Source: kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go PreFilter;
    pkg/kubelet/kubelet_pods.go makeEnvironmentVariables; pkg/volume/secret/secret.go;
    plugin/pkg/admission/serviceaccount/admission.go.
    """
    names = cluster.once(names_by_space)[0]
    for pods in cluster.pods if names else ():
        if pods.count != 0 and isinstance(pods.owner.namespace, str):
            for path, kind, name in _references(pods):
                listed = names.get((kind, pods.owner.namespace), ())
                if isinstance(name, str) and listed and name not in listed:
                    yield from _misspelled(pods, path, kind[1], (name, listed))


def _misspelled(
    pods: PodSet, path: str, kind: str, names: tuple[str, Mapping[str, None]]
) -> Iterator[Finding]:
    meant = name_slip_of(*names)
    if meant is not None:
        seen = f"is {display(names[0])}, but namespace {display(pods.owner.namespace)} has no such "
        yield advise(pods.at(path), f"{seen}{kind} here", write(meant))


_ByKind = dict[tuple[GroupKind, str], dict[str, None]]


def names_by_space(cluster: ClusterObjects) -> Iterator[_ByKind]:
    """Yield one map: the names of claims, Secrets and service accounts, by kind and namespace.

    A kind and namespace has no entry if it may have objects whose names are unknown.
    """
    found: _ByKind = {}
    for kind in (CLAIM, SECRET, SERVICE_ACCOUNT):
        for space, name in () if cluster.name_unknown(kind) else cluster.named(kind):
            found.setdefault((kind, space), {})[name] = None
    filled = _filled(cluster)
    for key in filled:
        if len(key) > 1:
            found.setdefault((SECRET, key[0]), {})[key[1]] = None
    hidden = [(SECRET, space) for kind, space in found if kind == SECRET and (space,) in filled]
    for pair in [*hidden, *(pair for pair in found if pair[0] == SECRET and () in filled)]:
        found.pop(pair, None)
    yield found


def _references(pods: PodSet) -> Iterator[_Named]:
    """Return what pods name and need."""
    spec = pods.spec
    yield "spec.serviceAccountName", SERVICE_ACCOUNT, spec.get("serviceAccountName")
    for i, volume in enumerate(map(mapping, sequence(spec.get("volumes")))):
        at = f"spec.volumes[{i}]"
        claim, secret = (mapping(volume.get(key)) for key in ("persistentVolumeClaim", "secret"))
        yield f"{at}.persistentVolumeClaim.claimName", CLAIM, claim.get("claimName")
        yield f"{at}.secret.secretName", SECRET, _required(secret, "secretName")
    for at, container in _containers(pods):
        for k, item in enumerate(sequence(container.get("envFrom"))):
            taken = mapping(mapping(item).get("secretRef"))
            yield f"{at}.envFrom[{k}].secretRef.name", SECRET, _required(taken, "name")
        for k, item in enumerate(sequence(container.get("env"))):
            taken = mapping(mapping(mapping(item).get("valueFrom")).get("secretKeyRef"))
            yield f"{at}.env[{k}].valueFrom.secretKeyRef.name", SECRET, _required(taken, "name")


def _required(taken: Mapping[str, Any], field: str) -> Any:
    return None if taken.get("optional") not in (None, False) else taken.get(field)
