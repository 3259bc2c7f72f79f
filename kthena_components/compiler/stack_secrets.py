"""Compares the Secrets of a stack with those that its servings use. Values are never read."""

from collections.abc import Iterator, Mapping

from kthena_components.compiler.compile import Compiled
from kthena_components.core.findings import Finding, Level, nearest, suggest
from kthena_components.core.plan.serving_plan import RolePlan
from kthena_components.core.plan.stack_file import SecretSpec, StackSpec
from kthena_components.core.values.read import mapping, sequence

_Use = tuple[str, str, str, str]
"""Path in the stack, namespace, name and key; no key for a whole Secret."""


def check_secrets_used(spec: StackSpec, compiled: Mapping[str, Compiled]) -> list[Finding]:
    """Report Secrets of a stack without a key that pods use, and those that a slip leaves unused.

    Args:
        compiled: Its servings by their path, `servings[0]`.
    """
    made = {(secret.namespace, secret.name): secret for secret in reversed(spec.secrets)}
    uses = [use for path, one in compiled.items() for use in _uses(path, one)]
    findings = [f for use in uses if (secret := made.get(use[1:3])) for f in _key(use, secret)]
    used = {use[1:3] for use in uses}
    lost = [use for use in uses if use[1:3] not in made]
    for index, secret in enumerate(spec.secrets):
        if (secret.namespace, secret.name) not in used:
            findings += _slip(f"secrets[{index}]", secret, lost)
    return findings


def _uses(path: str, one: Compiled) -> Iterator[_Use]:
    for role in one.plan.roles:
        token = role.stated.hugging_face_token
        for name, key in dict.fromkeys(secrets_of(role)):
            is_token = token is not None and (token.name, token.key) == (name, key)
            where = f"{path}.{role.path}" + (".hugging_face_token" if is_token else "")
            yield where, one.plan.namespace, name, key


def _key(use: _Use, secret: SecretSpec) -> Iterator[Finding]:
    path, _, name, key = use
    if key and key not in secret.data:
        seen = f"uses the key '{key}', but the Secret '{name}' of this stack has no such key, and "
        seen += "the container does not start without it"
        yield Finding(
            path=path, seen=seen, remedy=suggest(key, secret.data), rule="secret-key-exists"
        )


def _slip(path: str, secret: SecretSpec, lost: list[_Use]) -> Iterator[Finding]:
    """Find what was probably meant: the same name in another namespace, or a similar one."""
    for where, namespace, name, _ in lost:
        if name == secret.name:
            path, wanted = f"{path}.namespace", f"write namespace: {namespace}"
        elif namespace == secret.namespace and nearest(name, [secret.name]):
            wanted = f"write '{secret.name}' there"
        else:
            continue
        yield Finding(
            path=path,
            seen=f"no pod of this stack uses {secret.title}, but {where} uses {namespace}/{name}, "
            "which the stack does not create",
            remedy=f"{wanted}, or ignore this if both exist for other reasons",
            rule="secret-used",
            level=Level.ADVISORY,
        )
        return


def secrets_of(role: RolePlan) -> Iterator[tuple[str, str]]:
    """Find the Secrets that pods of a role need to start, each with its key, or all."""
    for template in filter(None, (role.entry, role.worker)):
        spec = mapping(template.get("spec"))
        containers = (*sequence(spec.get("containers")), *sequence(spec.get("initContainers")))
        for container in map(mapping, containers):
            for item in sequence(container.get("env")):
                source = mapping(mapping(item).get("valueFrom")).get("secretKeyRef")
                yield from _needed(source, "name", str(mapping(source).get("key", "")))
            for item in sequence(container.get("envFrom")):
                yield from _needed(mapping(item).get("secretRef"), "name")
        for volume in sequence(spec.get("volumes")):
            yield from _needed(mapping(volume).get("secret"), "secretName")


def _needed(source: object, field: str, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name of a required object that a source names, with the key."""
    stated = mapping(source)
    if isinstance(stated.get(field), str) and stated.get("optional") is not True:
        yield stated[field], key
