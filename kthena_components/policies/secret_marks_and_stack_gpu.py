"""Finds the secrets that the engine marks, and keeps the GPU that the config of the stack names.

The engine marks secrets, but the SDK removes the marks before a policy runs, and has no public API
that keeps them. So this module replaces the SDK's function that reads properties: it returns a
`_Sent`, in which each mark becomes a `Sealed`, and of which the SDK makes no proxy. If another
release of the SDK reads properties elsewhere, they are no `_Sent`, and all their values count as
secret.

The engine sends the config to the pack, so no code of a branch runs for it. But the SDK keeps only
the tags of the stack, and has no public API for its config. So this module wraps the SDK's method.
If another release has no such method, the stack names no GPU.

Source: pulumi v3.259.0 sdk/go/common/resource/plugin/analyzer_plugin.go, ConfigureStack;
pulumi-policy 1.21, policy.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pulumi_policy import policy as sdk
from pulumi_policy import proxy

from kthena_components.checker.secrecy import SECRET_SIGNATURE, SIGNATURE, Sealed
from kthena_components.core.hardware import NO_CHOICE, GpuChoice, parse_choice

_EXACT = 2**53
"""The largest whole number up to which a double holds each one."""
NO_MARKS = (
    f"all values are hidden, because pulumi-policy {version('pulumi-policy')} does not show which "
    "ones are secret. Use release 1.21"
)
_UNMARKED: Any = getattr(sdk, "deserialize_properties", dict)


class _Sent(Mapping[str, Any]):
    """The properties of a resource as the engine sent them.

    The SDK reads them again for each policy. Ours take `props`, and read them once. They are only
    decoded, and wrapped in the SDK's proxies, if another policy of the same pack reads a field.
    """

    __slots__ = ("_proxy", "props")

    def __init__(self, props: Mapping[str, Any]) -> None:
        """Keep the properties."""
        self.props = props
        self._proxy: Any = None

    def __getitem__(self, key: str) -> Any:
        """Return a field as the SDK's proxy does."""
        return self._decoded()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Set a field, as the SDK's proxy allows."""
        self._decoded()[key] = value

    def __iter__(self) -> Iterator[str]:
        """Return the names of the fields."""
        return iter(self._decoded())

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._decoded())

    def _decoded(self) -> Any:
        if self._proxy is None:
            sealed = {key: _sealed(item) for key, item in self.props.items()}
            self._proxy = proxy.unknown_checking_proxy(sealed)
        return self._proxy


def keep_marks() -> None:
    """Make the SDK read properties with `read_marked`."""
    # Not an assignment: type checkers do not know the attribute.
    vars(sdk)["deserialize_properties"] = read_marked


def read_marked(props: Mapping[str, Any], proxy_secrets: bool = False) -> Any:
    """Read properties as the SDK does, but wrap secrets in `Sealed`."""
    if proxy_secrets:  # for a remediation, where the SDK keeps the marks
        return _UNMARKED(props, proxy_secrets)
    return _Sent(props)


def _sealed(sent: Any) -> Any:
    """Decode what the engine sent; secret values become Sealed."""
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
    """Return whether the properties of a resource were read by `read_marked`."""
    return isinstance(props, _Sent)


def sent_props(props: Any) -> Any:
    """Return the properties of a resource as they were sent, to compare them.

    Without the marks of the engine, all of them are sealed, so they equal none with marks.
    """
    return props.props if isinstance(props, _Sent) else Sealed(plain(props))


def read_props(props: Any) -> dict[str, Any]:
    """Return the properties of a resource as plain data, with secrets in `Sealed`."""
    if isinstance(props, _Sent):
        return {key: _read(item) for key, item in props.props.items()}
    return {key: Sealed(plain(item)) for key, item in content(props).items()}


def read_field(props: Any, name: str) -> Any:
    """Return a field of a resource as plain data, with secrets in `Sealed` if they are marked."""
    if isinstance(props, _Sent):
        return _read(props.props.get(name))
    return plain(content(props).get(name))


def _read(sent: Any) -> Any:
    """Return a value that was sent as plain data: `plain(_sealed(sent))`, in one walk."""
    kind = type(sent)
    if kind is dict:
        if SIGNATURE in sent:
            return plain(_sealed(sent))
        return {k: item if type(item) is str else _read(item) for k, item in sent.items()}
    if kind is list:
        return [item if type(item) is str else _read(item) for item in sent]
    return plain(sent) if kind is float else sent


def plain(value: Any) -> Any:
    """Remove the policy SDK's proxies from a value. Unknown values stay as the SDK's strings.

    A proxy raises if an unknown value is read, so this takes its whole content. The engine sends
    every number as a double, also those that the provider writes as integers.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _EXACT else value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Sealed):
        return Sealed(plain(value.value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in content(value).items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in content(value)]
    return value


def content(value: Any) -> Any:
    """Return what the policy SDK's proxy of a map or list holds."""
    return value if isinstance(value, dict | list | tuple) else value["__target"]


_OURS = "kthena-components"
_METHOD = "ConfigureStack"
_named: list[GpuChoice] = []


def keep_gpu() -> None:
    """Make the SDK keep the GPU of the stack."""
    servicer: Any = getattr(sdk, "_PolicyAnalyzerServicer", None)
    own: Any = getattr(servicer, _METHOD, None)

    def configure(self: Any, request: Any, context: Any) -> Any:
        keys = [f"{project}:gpu" for project in (request.project, _OURS)]
        stated = (request.config[key] for key in keys if key in request.config)
        _keep("" if set(keys) & {*request.config_secret_keys} else next(stated, ""))
        return own(self, request, context)

    if own is not None:
        setattr(servicer, _METHOD, configure)


def _keep(stated: str) -> None:
    choice = parse_choice([stated] if stated else [])
    _named[:] = [choice] if isinstance(choice, GpuChoice) else []


def gpus_of_stack() -> GpuChoice:
    """Return the GPUs that the stack names; none if it names none that is known.

    A branch may change them, so those of the pack's own config take precedence.
    """
    return _named[0] if _named else NO_CHOICE
