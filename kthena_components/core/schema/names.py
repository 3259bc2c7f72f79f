"""Names of objects that YAML reads as another value, because they are not in quotes."""

from kthena_components.core.findings import Finding
from kthena_components.core.naming import dns_name
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display

NAMES = frozenset({"metadata.name", "metadata.generateName"})


def no_name(value: float, path: str, rule: str = "") -> Finding:
    """Report a name of an object that YAML reads as a number, or as true or false.

    The same characters in quotes, such as "Y" or "1.0", are a name of few kinds.
    """
    read = {True: ", as YAML reads Y, yes and on", False: ", as YAML reads N, no and off"}
    told = read[value] if isinstance(value, bool) else ""
    shown = display(value)
    seen = f"is {shown}{told}, but must be a text"
    return Finding(path=path, seen=seen, remedy=write(f"chat-{dns_name(shown)}"), rule=rule)
