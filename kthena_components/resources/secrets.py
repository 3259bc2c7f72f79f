"""Registers the Secrets of a stack, from secret config values; never logs or writes them.

Only the presence and secrecy of values are checked.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from kthena_components.core.findings import Finding, suggest
from kthena_components.core.naming import is_dns_name
from kthena_components.core.plan.stack_file import OutputMode, SecretSpec, StackConfig, StackSpec
from kthena_components.core.values.display import shell_word
from kthena_components.resources._access import provider_version
from kthena_components.resources._apply import completed

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class Secret(pulumi.CustomResource):
    """A Kubernetes Secret. The typed SDK is not used: its core.v1 takes half a second to import."""

    def __init__(
        self, secret: SecretSpec, values: Mapping[str, pulumi.Output[str]], provider: Any
    ) -> None:
        """Register the Secret with its values as secret outputs."""
        metadata = {"name": secret.name, "namespace": secret.namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        properties = {**completed(body, provider), "stringData": dict(values)}
        options = pulumi.ResourceOptions(
            provider=provider,
            version=provider_version(),
            additional_secret_outputs=["data", "stringData"],
        )
        super().__init__("kubernetes:core/v1:Secret", secret.title, properties, options)


def register_secrets(spec: StackSpec, provider: Any) -> list[pulumi.Resource]:
    """Register the Secrets of a checked stack."""
    config = pulumi.Config()
    return [
        Secret(
            secret,
            {key: config.require_secret(source) for key, source in secret.data.items()},
            provider,
        )
        for secret in spec.secrets
    ]


def check_secrets(spec: StackSpec, config: StackConfig) -> list[Finding]:
    """Report what keeps the stack's secrets from being set, or from staying secret."""
    rendered = _rendered(spec, config) if spec.output is OutputMode.RENDER else ()
    return [*_values_are_secret(spec, config), *rendered]


def unused_secrets(values: Mapping[str, Any], config: StackConfig) -> list[Finding]:
    """Report secret config values that nothing refers to."""
    unused = set(values) & config.secret_keys - set(StackSpec.model_fields)
    return [
        Finding(
            path=key,
            seen="is a secret config value that no entry of secrets names",
            remedy="name it in the data of a Secret, or run "
            f"'pulumi config rm {shell_word(key)} --stack {config.stack}'",
            rule="secret-unused",
        )
        for key in sorted(unused)
    ]


def _values_are_secret(spec: StackSpec, config: StackConfig) -> Iterator[Finding]:
    """Check the Secrets' names, and the source of each value."""
    for index, secret in enumerate(spec.secrets):
        if not is_dns_name(secret.name):
            yield Finding(
                path=f"secrets[{index}].name",
                seen=f"is '{secret.name}', but must be lower-case letters, digits, dashes and dots",
                remedy="write such a value",
                rule="pattern",
            )
        for key, source in secret.data.items():
            yield from _value(f"secrets[{index}].data.{key}", key, source, config)


def _value(path: str, key: str, source: str, config: StackConfig) -> Iterator[Finding]:
    """Check one value of a Secret: its key, and an encrypted config value as its source."""
    remedy = f"run 'pulumi config set --secret {shell_word(source)} --stack {config.stack}'"
    if not _KEY.fullmatch(key):
        seen, rule = (
            f"'{key}' is not a valid key of a Secret: letters, digits, '-', '_' and '.'",
            "pattern",
        )
        remedy = "write such a value"
    elif source in StackSpec.model_fields:
        seen, rule = f"'{source}' is a field of the stack, not a separate value", "secret-missing"
        remedy = "name another config key, such as hf_token"
    elif not config.values.get(source):
        seen, rule = f"there is no config value '{source}'", "secret-missing"
        remedy += ", which prompts for the value"
    elif source not in config.secret_keys:
        seen, rule = f"the config value '{source}' is in plain text", "secret-in-plain-text"
        remedy += ", which encrypts it, and revoke the old value if anyone else could read it"
    else:
        return
    yield Finding(path=path, seen=seen, remedy=remedy, rule=rule)


def _rendered(spec: StackSpec, config: StackConfig) -> Iterator[Finding]:
    """No Secret is written to a file unless the stack allows it: a file keeps nothing secret."""
    names = {secret.name for secret in spec.secrets}
    for index, name in enumerate(spec.allow_plain_secrets):
        if name not in names:
            yield Finding(
                path=f"allow_plain_secrets[{index}]",
                seen=f"there is no '{name}' in secrets",
                remedy=suggest(name, names) if names else "remove it",
                rule="known-value",
            )
    for index, secret in enumerate(spec.secrets):
        if secret.name not in spec.allow_plain_secrets:
            file = f"v1-secret-{secret.namespace}-{secret.name}.yaml"
            yield Finding(
                path=f"secrets[{index}]",
                seen=f"'{secret.title}' would be written in plain text to "
                f"{spec.directory(config.stack)}/1-manifest/{file}",
                remedy=f"add {secret.name} to the list kthena-components:allow_plain_secrets and "
                "keep the file out of version control, or write output: cluster",
                rule="secret-rendered",
            )
