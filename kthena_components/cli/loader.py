"""PyYAML's safe loader, set to read scalars as Kubernetes does.

Kubernetes knows no dates, no sexagesimal numbers (`22:30`) and no `=`: these are text there.
Source: sigs.k8s.io/yaml, goyaml.v2/resolve.go.
"""

import re
from typing import Any

import yaml

_PREFIX = "tag:yaml.org,2002:"
_TEXT = {f"{_PREFIX}timestamp", f"{_PREFIX}value"}
_NUMBERS = {
    f"{_PREFIX}int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)\Z"),
    f"{_PREFIX}float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(_SAFE):  # type: ignore[misc]  # which one it is depends on how PyYAML was built
    """Builds nothing but maps, lists and scalars. A tag of another kind is an error."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and shape
        first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in rows if tag not in _TEXT]
        for first, rows in _SAFE.yaml_implicit_resolvers.items()
    }
