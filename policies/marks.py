"""What is secret among what the engine hands over.

The engine marks secrets, and the SDK takes the marks off before a policy sees anything; nothing
public of it keeps them. So its reading of properties is replaced, as narrowly as can be: each mark
becomes a `Sealed`, which the SDK's proxies pass on. Properties that came another way, because a
release of the SDK reads them elsewhere, lack `_READ`, and then all in them counts as secret.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pulumi_policy import policy as sdk

from kthena_components.judge.secrecy import SECRET_SIGNATURE, SIGNATURE, Sealed

_READ = "\ue011marked"
NO_MARKS = (
    f"no value is shown, because pulumi-policy {version('pulumi-policy')} does not tell which ones "
    "are secret. Use release 1.21"
)
_UNMARKED: Any = getattr(sdk, "deserialize_properties", dict)


def keep_marks() -> None:
    """Have the SDK read properties by `read_marked`."""
    # Not an assignment, which a type checker would have to know the attribute for.
    vars(sdk)["deserialize_properties"] = read_marked


def read_marked(props: Mapping[str, Any], proxy_secrets: bool = False) -> Any:
    """Read properties as the SDK does, but seal what is secret."""
    if proxy_secrets:  # for a remediation, which keeps the marks by itself
        return _UNMARKED(props, proxy_secrets)
    return {**{key: _sealed(item) for key, item in props.items()}, _READ: True}


def _sealed(sent: Any) -> Any:
    if isinstance(sent, list):
        return [_sealed(item) for item in sent]
    if not isinstance(sent, dict):
        return sent
    signature = sent.get(SIGNATURE)
    if signature == SECRET_SIGNATURE:
        return Sealed(_sealed(sent.get("value")))
    if signature is not None:  # an asset or an archive
        return _UNMARKED({"": sent})[""]
    return {key: _sealed(item) for key, item in sent.items()}


def has_marks(props: Any) -> bool:
    """Tell whether the properties of a resource were read by `read_marked`."""
    return isinstance(props, Mapping) and _content(props).get(_READ) is True


def read_props(props: Any) -> dict[str, Any]:
    """Give the properties of a resource as plain data with seals."""
    fields: dict[str, Any] = plain(props)
    if fields.pop(_READ, False) is True:
        return fields
    return {key: Sealed(item) for key, item in fields.items()}


def plain(value: Any) -> Any:
    """Take the policy SDK's proxies off a value, leaving the texts that stand for unknowns.

    A proxy raises as soon as an unknown value is touched, so its content is taken whole.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Sealed):
        return Sealed(plain(value.value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in _content(value).items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in _content(value)]
    return value


def _content(value: Any) -> Any:
    return value if isinstance(value, dict | list | tuple) else value["__target"]
