"""Refuses the options of a component that do nothing to its objects, or break their updates.

Pulumi applies most options to the component alone, which has no object. What each one does is in
docs/own-program.md, and tests/pulumi/test_options.py shows it with the engine.
"""

from collections.abc import Iterable, Iterator, Mapping

import pulumi

from kthena_components.core.findings import Finding
from kthena_components.core.plan.manifest import Manifest

RULE = "component-option"
_TRANSFORM = "remove it, and set it on the objects with transforms (docs/own-program.md, Options)"
_RESTART = "remove it; to replace the engines, change an annotation in the overlay of the role"
_WITHOUT_EFFECT: Mapping[str, str] = {
    "ignore_changes": _TRANSFORM,
    "replace_on_changes": _TRANSFORM,
    "hide_diffs": _TRANSFORM,
    "delete_before_replace": "remove it: what an update replaces is deleted first already",
    "replacement_trigger": _RESTART,
    "replace_with": _RESTART,
    "additional_secret_outputs": "remove it, and pass pulumi.Output.secret as args, which stay "
    "secret in the objects",
    "import_": "remove it, and import the objects: docs/convert.md, From a cluster",
    "id": "remove it",
    "urn": "remove it",
    "env_var_mappings": "remove it, and set it on the provider",
}
"""What to do instead of each option that reaches no object."""
_OF_PODS = frozenset({"spec.template", "inference.template", "inference.preset"})
"""Fields of a StatefulSet and of KAITO's kinds that have the pods, or choose them."""


def refuse_options(
    opts: pulumi.ResourceOptions | None, manifests: Iterable[Manifest]
) -> Iterator[Finding]:
    """Report the options that a component cannot have."""
    for option, remedy in _WITHOUT_EFFECT.items() if opts is not None else ():
        value = getattr(opts, option, None)
        # A component of another language gets empty lists and False for what is not set.
        if value is None or value is False or value == []:
            continue
        seen = "is given, but Pulumi applies it to the component and not to its objects"
        yield Finding(path=f"opts.{option}", seen=seen, remedy=remedy, rule=RULE)
    replaced = _replaced(manifests)
    if replaced is not None and opts is not None:
        yield from _refuse_keeping(opts, replaced)


def is_of_option(finding: Finding) -> bool:
    """Return whether a finding is about one of Pulumi's options, and not about args."""
    return finding.rule == RULE


def _replaced(manifests: Iterable[Manifest]) -> Manifest | None:
    """Return an object that another image replaces; None if the backend updates it in place."""
    return next((each for each in manifests if each.delete_first and _has_pods(each)), None)


def _has_pods(manifest: Manifest) -> bool:
    return any(path in _OF_PODS for path in manifest.replace_on)


def _refuse_keeping(opts: pulumi.ResourceOptions, replaced: Manifest) -> Iterator[Finding]:
    """Reject options that keep an object which an update must delete."""
    why = f"is true, but another image replaces {replaced.title}"
    parent = getattr(opts.parent, "_protect", None)
    if opts.protect or (opts.protect is None and parent):
        yield Finding(
            path="opts.protect",
            seen=f"{why}, and Pulumi replaces no protected object: each such update would fail",
            remedy="write protect=False, in an update without other changes; backends kthena and "
            "lws update their objects in place",
            rule=RULE,
        )
    if opts.retain_on_delete:
        yield Finding(
            path="opts.retain_on_delete",
            seen=f"{why}, and Pulumi would keep the old one under the name of the new one",
            remedy="remove it; 'pulumi state delete --target-dependents' takes the component out "
            "of the stack and leaves its objects",
            rule=RULE,
        )
