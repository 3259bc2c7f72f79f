"""How the objects of a system are read back to the arguments of a ModelServing, for `convert`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.objects.object import GroupKind
from kthena_components.core.values.dataclass import dataclass

Body = Mapping[str, Any]
Pair = tuple[str, str]
"""Key and value of a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How the objects of a serving are found, where it has several of one kind."""

    find: Callable[[Sequence[Body]], Iterator[tuple[int, ...]]]
    """Indices of the objects of each serving among some objects."""
    joined: Callable[[Sequence[Body]], Body]
    """These objects as one: the serving's name below `metadata`, and each object as KIND/NAME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How the objects of a system are read back to arguments: the inverse of `emit`.

    It may leave out whatever it does not know: what it describes is emitted again and compared with
    the object, so nothing is lost unseen.
    """

    kinds: tuple[GroupKind, ...]
    filled: Callable[[Body], dict[str, Any]]
    """An object with the defaults that the API server or a webhook would set. Two objects that mean
    the same are equal then."""
    arguments: Callable[[Body], dict[str, Any]]
    """The arguments of a ModelServing, of a filled object. Defaults that differ between backends
    are stated.
    """
    merged: Callable[[Body, Sequence[Body]], tuple[Body, tuple[int, ...]]] | None = None
    """Puts others among some objects, which are written with this one, into it, and returns their
    indices: a ConfigMap in the place of its name. None: an object has all of its serving.
    """
    beside: tuple[GroupKind, ...] = ()
    """The kinds of these others."""
    gathered: Gathering | None = None
    """None: each object of its kinds is a serving."""
    only_here: tuple[str, ...] = ()
    """Options that no other backend has. List them only if the backend cannot be emitted without
    them: else the comparison without options finds what is lost.
    """
    elsewhere: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Changes the arguments for another backend. None: they are the same."""
    same_name: Callable[[Body, dict[str, Any], bool], dict[str, Any]] | None = None
    """Renames the arguments so that an object of the same kind keeps its name, where that needs
    other names than those for another kind. True: another object's name begins like it, up to the
    last dash. None: the name stays anyway."""
    labels: tuple[str, ...]
    """Prefixes of the labels that the system's controller gives to pods."""
    label: Callable[[Pair], Pair | None]
    """Kthena's label with the meaning of such a label; None if there is none."""
