"""The shape of a ModelServing: its fields, their kinds, and the versions that have them.

A small schema language, the CRD written in it, and the walk that judges a value by it. Rules
between fields are in kthena_admission.py. Of the embedded pods only what is written here is
judged: their lists, whose members have a key, and what is often mistaken in YAML.

Source: Kthena charts/kthena/charts/workload/crds/workload.serving.volcano.sh_modelservings.yaml
at v0.1.0, v0.2.0, v0.3.0, v0.4.0 and v1.0.0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path, suggest
from kthena_components.core.known import MaybeInt, Unknown, is_late
from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.quantity import QUANTITY

KTHENA_VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")
"""Kthena's releases, oldest first."""
SCHEMA, VERSION = "kthena-schema", "kthena-version"
SURGE = "maxSurge"
"""Kthena's users expect it in many places; a rule of its own speaks of it."""
LATE = Unknown("the value is known only after the deployment")
_SHOWN, _QUANTITY = 40, 64
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Free:
    """Anything at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text, perhaps one of a few, perhaps no longer than so many characters."""

    one_of: tuple[str, ...] = ()
    longest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number of so many bits."""

    bits: int = 32
    least: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A whole number or a text; which texts are percentages, a rule says."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity of a resource: a whole number or a text, never a fraction."""


@dataclass(frozen=True, slots=True)
class Table:
    """A map from any key to values of one shape."""

    of: "Schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list. Where it has keys, no two of its members share them."""

    of: "Schema"
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A map with known fields. A partial one may have others, which are not judged."""

    fields: "Mapping[str, Schema | Since]"
    required: tuple[str, ...] = ()
    partial: bool = False


Schema = Free | Text | Whole | Budget | Amount | Table | Items | Fields


class Since:
    """A field that changed: its shape since each version; None where there is no such field."""

    def __init__(self, *forms: tuple[str, Schema | None]) -> None:
        """Keep the shapes, oldest first."""
        self.forms = forms

    def at(self, version: str) -> Schema | None:
        """Give the shape that a version reads."""
        age = KTHENA_VERSIONS.index
        return next((s for v, s in reversed(self.forms) if age(v) <= age(version)), None)


def _part(*required: str, **fields: Schema | Since) -> Fields:
    named = {name: fields.get(name, Text()) for name in (*required, *fields)}
    return Fields(fields=named, required=required, partial=True)


_TEXTS, _AMOUNTS = Table(Text()), Table(Amount())
_NAMED = Items(of=_part("name"), keys=("name",))
_CONTAINERS = Items(
    keys=("name",),
    of=_part(
        "name",
        image=Text(),
        command=Items(of=Text()),
        args=Items(of=Text()),
        env=Items(of=_part("name", value=Text()), keys=("name",)),
        ports=Items(
            of=_part("containerPort", containerPort=Whole(), protocol=Text()),
            keys=("containerPort", "protocol"),
        ),
        resources=_part(limits=_AMOUNTS, requests=_AMOUNTS, claims=_NAMED),
        volumeMounts=Items(of=_part("mountPath", "name"), keys=("mountPath",)),
        volumeDevices=Items(of=_part("devicePath", "name"), keys=("devicePath",)),
    ),
)
_ALIAS = _part(ip=Text(), hostnames=Items(of=Text()))
_POD = _part(
    "containers",
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    volumes=_NAMED,
    resourceClaims=_NAMED,
    schedulingGates=_NAMED,
    imagePullSecrets=Items(of=_part(name=Text()), keys=("name",)),
    hostAliases=Since(("0.1", Items(of=_ALIAS, keys=("ip",))), ("0.3", Items(of=_ALIAS))),
    topologySpreadConstraints=Items(
        of=_part("maxSkew", "topologyKey", "whenUnsatisfiable", maxSkew=Whole()),
        keys=("topologyKey", "whenUnsatisfiable"),
    ),
    nodeSelector=_TEXTS,
    terminationGracePeriodSeconds=Whole(bits=64),
)
_KEY_DEFAULTS = {"protocol": "TCP", "name": ""}
_TEMPLATE = Fields(
    fields={"metadata": Fields(fields={"labels": _TEXTS, "annotations": _TEXTS}), "spec": _POD}
)
_ROLE = Fields(
    required=("name", "entryTemplate", "workerReplicas"),
    fields={
        "name": Text(),
        "replicas": Whole(),
        "entryTemplate": _TEMPLATE,
        "workerReplicas": Whole(),
        "workerTemplate": _TEMPLATE,
        "maxUnavailable": Since(("1.0", Budget())),
    },
)
_MODE, _TIER = Text(one_of=("hard", "soft")), Whole(bits=64)
_POLICY = Fields(
    fields={
        "mode": _MODE,
        "highestTierAllowed": Since(("0.1", _TIER), ("0.3", Whole(bits=64, least=0))),
        "highestTierName": Since(("0.1", Text()), ("0.3", Text(longest=253))),
    }
)
_GROUP = Fields(
    required=("roles",),
    fields={
        "restartGracePeriodSeconds": Whole(bits=64),
        "gangPolicy": Fields(fields={"minRoleReplicas": Table(Whole())}),
        "networkTopology": Since(
            ("0.1", Fields(fields={"mode": _MODE, "highestTierAllowed": _TIER})),
            ("0.2", Fields(fields={"groupPolicy": _POLICY, "rolePolicy": _POLICY})),
        ),
        "roles": Items(of=_ROLE),
    },
)
_BY_GROUP, _BY_ROLE = "ServingGroupRollingUpdate", "RoleRollingUpdate"
_ROLLOUT = Fields(
    fields={
        "type": Since(
            ("0.1", Text(one_of=(_BY_GROUP,))), ("0.4", Text(one_of=(_BY_GROUP, _BY_ROLE)))
        ),
        "rollingUpdateConfiguration": Fields(
            fields={
                "maxUnavailable": Budget(),
                "partition": Since(("0.1", Whole()), ("0.4", Budget())),
                SURGE: Since(("0.1", Budget()), ("0.3", None)),
            }
        ),
    }
)
_PLUGIN = Fields(
    required=("name",),
    fields={
        "name": Text(),
        "type": Text(one_of=("BuiltIn",)),
        "config": Free(),
        "scope": Fields(fields={"roles": Items(of=Text()), "target": Text()}),
    },
)
_SPREAD = _part(maxSkew=Whole(), topologyKey=Text(), whenUnsatisfiable=Text())
_SPEC = Fields(
    required=("template",),
    fields={
        "replicas": Whole(),
        "schedulerName": Text(),
        "plugins": Since(("0.3", Items(of=_PLUGIN))),
        "template": _GROUP,
        "rolloutStrategy": _ROLLOUT,
        "recoveryPolicy": Text(one_of=("ServingGroupRecreate", "RoleRecreate", "None")),
        "topologySpreadConstraints": Since(("0.1", Items(of=_SPREAD)), ("0.2", None)),
    },
)
_META = {"name": Text(), "generateName": Text(), "labels": _TEXTS, "annotations": _TEXTS}
MODEL_SERVING = _part(
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    apiVersion=Text(one_of=("workload.serving.volcano.sh/v1alpha1",)),
    kind=Text(one_of=("ModelServing",)),
    metadata=Fields(fields=_META, partial=True),
    spec=_SPEC,
)


def judge_shape(
    value: object, version: str, path: str = "", schema: Schema = MODEL_SERVING
) -> Iterator[Finding]:
    """Judge a value by a shape. Never descends further than the shape does."""
    gap = gap_of(value)
    match schema:
        case Free() | Text(one_of=(), longest=None) if gap:
            return
        case _ if gap:
            yield not_checked(path, gap, SCHEMA)
        case Fields() if isinstance(value, Mapping):
            yield from _fields(value, schema, path, version)
        case Table() if isinstance(value, Mapping):
            for key, item in value.items():
                if item is not None:
                    yield from judge_shape(item, version, join_path(path, key_text(key)), schema.of)
        case Items() if isinstance(value, list | tuple):
            for index, item in enumerate(value):
                yield from judge_shape(item, version, f"{path}[{index}]", schema.of)
            yield from _doubles(value, schema.keys, path)
        case _:
            yield from _scalar(value, schema, path)


def _fields(value: Mapping[Any, Any], schema: Fields, path: str, version: str) -> Iterator[Finding]:
    for key in schema.required:
        if value.get(key) is None:
            yield _mistake(join_path(path, key), "is missing, and it has no default", f"add {key}")
    for key, item in value.items():
        known, at = schema.fields.get(key), join_path(path, key_text(key))
        if item is None or (known is None and schema.partial):
            continue
        if isinstance(known, Since):
            yield from _dated(item, known, at, version)
        elif known is not None:
            yield from judge_shape(item, version, at, known)
        elif key != SURGE:
            yield _dropped(at, suggest(key_text(key), (k for k in schema.fields if k != SURGE)))


def _dated(value: object, field: Since, path: str, version: str) -> Iterator[Finding]:
    found = list(_form(value, field.at(version), path, version))
    if path.endswith(SURGE) or not any(map(_weighs, found)):
        yield from found
        return
    # An older Kthena is worth a hint only where the newer one loses the field without a word.
    lost = all(f.level is Level.ADVISORY for f in found)
    age = KTHENA_VERSIONS.index
    for since, form in field.forms:
        fits = form is not None and not any(map(_weighs, _form(value, form, path, since)))
        if fits and (lost or age(since) > age(version)):
            yield from (_in_another_version(f, version, since) for f in found)
            return
    yield from found


def _form(value: object, form: Schema | None, path: str, version: str) -> Iterator[Finding]:
    if form is None:
        yield _dropped(path, "remove it")
    else:
        yield from judge_shape(value, version, path, form)


def _in_another_version(finding: Finding, version: str, other: str) -> Finding:
    seen = f"{finding.seen}; that is so in Kthena {version}, while {other} takes it"
    return replace(
        finding, seen=seen, remedy=f"for Kthena {version}, {finding.remedy}", rule=VERSION
    )


def _scalar(value: object, schema: Schema, path: str) -> Iterator[Finding]:
    match schema, value:
        case Text(), str():
            yield from _text(value, schema, path)
        case (Budget(), str()) | (Free(), _):
            pass
        case Amount(), str():
            if len(value) <= _QUANTITY and not (value.isascii() and QUANTITY.fullmatch(value)):
                seen = f"is {show(value)}, which is not a quantity"
                yield _mistake(path, seen, "write for example 8, 500m or 1124Gi")
        case ((Whole() | Budget() | Amount()), _) if isinstance(number := whole(value), int):
            bits, least = (schema.bits, schema.least) if isinstance(schema, Whole) else (32, None)
            bits = 64 if isinstance(schema, Amount) else bits
            if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
                yield _mistake(
                    path, f"is {show(value)}, which {bits} bits cannot hold", "write less"
                )
            elif least is not None and number < least:
                yield _mistake(path, f"is {number}, but must be at least {least}", f"write {least}")
        case _:
            yield _wrong_kind(value, schema, path)


def _text(value: str, schema: Text, path: str) -> Iterator[Finding]:
    if schema.one_of and value not in schema.one_of:
        words = " or ".join(f"'{word}'" for word in schema.one_of)
        yield _mistake(
            path, f"is {show(value)}, but must be {words}", suggest(value, schema.one_of)
        )
    if schema.longest is not None and len(value) > schema.longest:
        over = len(value) - schema.longest
        seen = f"has {len(value)} characters, but may have {schema.longest}"
        yield _mistake(path, seen, f"shorten it by {over}")


def _wrong_kind(value: object, schema: Schema, path: str) -> Finding:
    match schema:
        case Text():
            wanted, remedy = "a text", "write it in quotes"
        case Whole():
            wanted, remedy = "a whole number", "write for example 1, without quotes"
        case Budget():
            wanted, remedy = "a whole number or a percentage", "write for example 1 or 25%"
        case Amount():
            wanted, remedy = "a whole number or a text", "write it in quotes"
        case Items():
            wanted, remedy = "a list", "write a list"
        case _:
            wanted, remedy = "a map", "write a map"
    return _mistake(path, f"is {show(value)}, but must be {wanted}", remedy)


def _doubles(
    items: list[Any] | tuple[Any, ...], keys: tuple[str, ...], path: str
) -> Iterator[Finding]:
    first: dict[tuple[object, ...], int] = {}
    for index, item in enumerate(items if keys else ()):
        if not isinstance(item, Mapping):
            continue
        parts = [item.get(key) for key in keys]
        values = [
            _KEY_DEFAULTS.get(k) if v is None else v for k, v in zip(keys, parts, strict=True)
        ]
        gap = first_gap(*values)
        if gap:
            yield not_checked(f"{path}[{index}]", gap, SCHEMA)
        elif all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values):
            before = first.setdefault(tuple(values), index)
            if before != index:
                what = " and ".join(f"{k} {show(v)}" for k, v in zip(keys, values, strict=True))
                seen = f"has {what}, as [{before}] has, and the API server refuses such doubles"
                yield _mistake(f"{path}[{index}]", seen, "rename it or remove it")


def gap_of(value: object) -> Unknown | None:
    """Say why a value cannot be judged, if it cannot."""
    return value if isinstance(value, Unknown) else LATE if is_late(value) else None


def first_gap(*values: object) -> Unknown | None:
    """Say why values cannot be judged together, if they cannot."""
    return next((gap for gap in map(gap_of, values) if gap), None)


def whole(value: object) -> MaybeInt | None:
    """Read a whole number, 8.0 as well: JSON does not tell them apart. None for anything else."""
    if gap := gap_of(value):
        return gap
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _EXACT):
        return None
    return int(value)


def show(value: object) -> str:
    """Write a value for a message, in one line and never long."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        case int() if value.bit_length() > _QUANTITY:
            return f"a number of {value.bit_length()} bits"
        case int() | float():
            return str(value)
        case Mapping():
            return "a map"
        case list() | tuple():
            return "a list"
    return f"a value of type {type(value).__name__}"


def key_text(key: object) -> str:
    """Write a map's key for a path."""
    return key if isinstance(key, str) and len(key) <= DNS_LABEL else show(key).strip("'")


def not_checked(path: str, gap: Unknown, rule: str) -> Finding:
    """Say that a rule could not judge a place, and why."""
    seen = f"not checked, because {gap.because}"
    return Finding(path=path, seen=seen, rule=rule, level=Level.UNKNOWN)


def _weighs(finding: Finding) -> bool:
    return finding.level is not Level.UNKNOWN


def _mistake(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA)


def _dropped(path: str, remedy: str) -> Finding:
    seen = "is no field here, and the API server drops it silently"
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA, level=Level.ADVISORY)
