"""The stack program: from config to resources, with all errors before the first resource.

core/plan/stack_file.py defines stack files, secrets.py the Secrets, and cluster.py the access to
the cluster.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pulumi
import yaml

from kthena_components.checker.secrecy import conceal
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.compiler.stack_secrets import check_secrets_used
from kthena_components.core.findings import Finding, Level, SpecError, fault, today
from kthena_components.core.plan.report import gpu_count, requested_gpus, shape
from kthena_components.core.plan.stack_file import (
    OutputMode,
    StackConfig,
    StackSpec,
    check_stack,
    is_kubeconfig_text,
    objects_once,
    parents_first,
    parse_stack,
    read_values,
    within_budget,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.resources._access import Access, mark_reaching, provider_version
from kthena_components.resources._apply import mark_rendering
from kthena_components.resources._model import read_hf_configs
from kthena_components.resources._outputs import hide_values, to_tokens
from kthena_components.resources.cluster import UNREACHABLE, askable_context, check_cluster
from kthena_components.resources.components import HyperNodeTopology, ModelServing, Queue
from kthena_components.resources.secrets import check_secrets, register_secrets, unused_secrets
from kthena_components.systems.volcano.emit_cluster import check_queues

SHOWN = 32
"""Exit status that tells Pulumi's language host that the error was already shown.

Source: sdk/python/cmd/pulumi-language-python-exec in the Pulumi repository.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A checked stack, ready to be registered."""

    spec: StackSpec
    values: Mapping[str, Any]
    """The input by field: components take args, not specs."""
    servings: tuple[Compiled, ...]
    advice: tuple[Finding, ...]
    """Findings about several entries that stop nothing; components report their own."""


def main() -> None:
    """Deploy, and show errors alone: Pulumi would add "an unhandled error occurred"."""
    try:
        deploy()
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        sys.exit(SHOWN)


def deploy() -> None:
    """Register everything in the stack's config, or nothing if there are errors."""
    config = read_config()
    try:
        stack = load_stack(config)
        _require_cluster(stack, config)
    except SpecError as error:
        raise pulumi.RunError(str(error)) from None
    _register(stack, config)


def read_config() -> StackConfig:
    """Read the config of the running stack from Pulumi."""
    project, stack = pulumi.get_project(), pulumi.get_stack()
    own = f"{project}:"
    values: dict[str, str] = pulumi.runtime.get_config_env()
    secret_keys: list[str] = pulumi.runtime.get_config_secret_keys_env()
    settings = yaml.safe_load(Path(pulumi.get_root_directory(), "Pulumi.yaml").read_text()) or {}
    folder = settings.get("stackConfigDir")
    return StackConfig(
        project=project,
        stack=stack,
        file=f"{f'{folder}/' if folder else ''}Pulumi.{stack}.yaml",
        values={k.removeprefix(own): v for k, v in values.items() if k.startswith(own)},
        secret_keys=frozenset(k.removeprefix(own) for k in secret_keys if k.startswith(own)),
    )


def load_stack(config: StackConfig) -> Stack:
    """Compile a whole stack, or raise one SpecError with all mandatory findings."""
    fields = config.secret_keys & set(StackSpec.model_fields)
    try:
        stack, found = _check(config)
    except Exception as error:
        if not fields:
            raise
        # Its text and its traceback may contain a secret value.
        raise refusal([fault("reading the stack", error)], config) from None
    if found and fields:
        shadow = replace(config, values=hide_values(config.values, config.secret_keys))
        found = conceal(found, lambda config: _check(config)[1], shadow, read_values(shadow))
    if found:
        raise refusal(found, config)
    return stack


def _check(config: StackConfig) -> tuple[Stack, list[Finding]]:
    """Compile a stack as far as possible, and return the mandatory findings."""
    values = read_values(config)
    unused = unused_secrets(values, config)
    known = {key: value for key, value in values.items() if key not in {f.path for f in unused}}
    spec, findings = parse_stack(known)
    findings += [*unused, *check_stack(spec, config), *check_secrets(spec, config)]
    findings += [*check_queues(spec.queues), *_plain(known)]
    compiled: dict[str, Compiled] = {}
    for index, serving in enumerate(spec.servings):
        path = f"servings[{index}]"
        try:
            args = read_hf_configs(to_tokens(serving)[0])
            compiled[path] = compile_serving(args, today=today(), gpus=spec.gpus)
            findings += _about_gpus(spec, args, compiled[path], path)
        except SpecError as error:
            findings += [finding.under(path) for finding in error.findings]
    if not any(finding.rule == "name-once" for finding in findings):
        made = [(p, [m.title for m in c.manifests]) for p, c in compiled.items()]
        made += [(f"secrets[{i}]", [f"Secret {s.title}"]) for i, s in enumerate(spec.secrets)]
        findings += objects_once(made)
    findings += within_budget(spec, requested_gpus(one.plan for one in compiled.values()))
    findings += check_secrets_used(spec, compiled)
    advice = tuple(finding for finding in findings if finding.level is Level.ADVISORY)
    stack = Stack(spec=spec, values=values, servings=tuple(compiled.values()), advice=advice)
    return stack, [finding for finding in findings if finding.level is Level.MANDATORY]


def _about_gpus(
    spec: StackSpec, args: Mapping[str, Any], compiled: Compiled, path: str
) -> list[Finding]:
    """Return what a serving's component does not report: it does not know the stack's GPU."""
    if not spec.gpus:
        return []
    alone = compile_serving(args, today=today()).findings
    return [finding.under(path) for finding in compiled.findings if finding not in alone]


def _plain(values: Mapping[str, Any]) -> list[Finding]:
    """Reject the characters that mark Outputs, in the input of components other than servings.

    The components would reject them, too, but only after others were registered.
    """
    try:
        to_tokens({key: values[key] for key in ("topology", "queues") if key in values})
    except SpecError as error:
        return list(error.findings)
    return []


def refusal(findings: Sequence[Finding], config: StackConfig) -> SpecError:
    """Return the error of a stack, with paths in its file."""
    located = [config.located(finding) for finding in findings]
    return SpecError(located, f"stack '{config.stack}' is refused, and nothing was changed")


def _register(stack: Stack, config: StackConfig) -> None:
    """Register what servings need, then the servings, then the stack's outputs."""
    for finding in stack.advice:
        pulumi.log.warn(str(config.located(finding)))
    provider = _provider(stack.spec, config)
    first, queues = _shared(stack, pulumi.ResourceOptions(provider=provider))
    first += register_secrets(stack.spec, provider)
    needed = pulumi.ResourceOptions(provider=provider, depends_on=first)
    endpoints: dict[str, pulumi.Output[str | None]] = {}
    for args, compiled in zip(stack.spec.servings, stack.servings, strict=True):
        name = f"{compiled.plan.namespace}/{compiled.plan.name}"
        tied = _tied(stack, args, "queue", queues)
        endpoints[name] = ModelServing(name, cast("Any", tied), needed).endpoint
    plans = [compiled.plan for compiled in stack.servings]
    rows = [row for plan in plans for row in shape(plan)]
    pods, gpus = sum(plan.pods for plan in plans), gpu_count(rows)
    pulumi.export("servings", rows)
    pulumi.export("endpoints", endpoints)
    pulumi.export("totals", {"servings": len(plans), "pods": pods, "gpus": gpus})


def _provider(spec: StackSpec, config: StackConfig) -> pulumi.ProviderResource:
    """Register the Kubernetes provider.

    Not with the class of pulumi_kubernetes: it copies KUBECONFIG into its inputs, so a machine with
    a cluster could not render, and each machine's path would be in the state.
    """
    if spec.output is OutputMode.RENDER:
        properties: dict[str, Any] = {"renderYamlToDirectory": spec.directory(config.stack)}
    else:
        stated = spec.kubeconfig
        secret = is_kubeconfig_text(stated) or "kubeconfig" in config.secret_keys
        text = pulumi.Output.secret(stated) if secret else stated
        properties = {"kubeconfig": text, "context": spec.context}
    # A Secret keeps its name, so a new value updates it instead of replacing it.
    properties["enableSecretMutable"] = "true"
    options = pulumi.ResourceOptions(version=provider_version())
    provider = pulumi.ProviderResource("kubernetes", str(spec.output), properties, options)
    if spec.output is OutputMode.RENDER:
        mark_rendering(provider)
    else:
        mark_reaching(provider, Access(spec.kubeconfig, spec.context))
    return provider


def _shared(
    stack: Stack, options: pulumi.ResourceOptions
) -> tuple[list[pulumi.Resource], dict[str, Queue]]:
    """Register cluster-scoped objects: HyperNodes, and queues with parents first.

    Returns the queues by name, too.
    """
    others: list[pulumi.Resource] = []
    queues: dict[str, Queue] = {}
    if stack.spec.topology:
        others.append(HyperNodeTopology("topology", stack.values["topology"], options))
    written = {queue["name"]: queue for queue in stack.values.get("queues", [])}
    for spec in parents_first(stack.spec.queues):
        above = pulumi.ResourceOptions(depends_on=queues.get(spec.parent or ""))
        args = _tied(stack, written[spec.name], "parent", queues)
        merged = pulumi.ResourceOptions.merge(options, above)
        queues[spec.name] = Queue(spec.name, cast("Any", args), merged)
    return [*others, *queues.values()], queues


def _tied(
    stack: Stack, args: Mapping[str, Any], field: str, queues: Mapping[str, Queue]
) -> Mapping[str, Any]:
    """Replace the name of a queue that this stack creates by the queue's own output.

    Volcano's webhooks reject objects in a queue that does not exist, and Pulumi's provider calls
    them in a preview, too: its dry runs reach the cluster. It skips objects with unknown values,
    and the name of a queue is unknown until the queue is created. Source: Volcano v1.14
    pkg/webhooks/admission, podgroups/validate and queues/validate; pulumi-kubernetes v4.25
    provider/pkg/provider/provider.go Create.
    """
    queue = queues.get(args.get(field, ""))
    if queue is None or stack.spec.output is OutputMode.RENDER:
        return args
    return {**args, field: queue.name}


def _require_cluster(stack: Stack, config: StackConfig) -> None:
    """Reject a cluster that does not answer, or does not serve the stack's kinds.

    A preview only warns.
    """
    secret = "kubeconfig" in config.secret_keys
    found = check_cluster(stack.spec, os.environ, secret=secret)
    if found is not None and found.level is Level.UNKNOWN:
        pulumi.log.info(str(config.located(found)))
        found = None
    findings = [found] if found else _unserved(stack)
    if not findings:
        return
    if pulumi.runtime.is_dry_run() and (found is None or found.rule == UNREACHABLE):
        lines = "\n".join(str(config.located(finding)) for finding in findings)
        until = "This preview only uses the state; an" if found else "An"
        pulumi.log.warn(f"{lines}\n{until} update fails until then.")
    else:
        raise refusal(findings, config)


def _unserved(stack: Stack) -> list[Finding]:
    """Query the cluster for the kinds, if the extra `cluster` is installed."""
    context = askable_context(stack.spec, os.environ)
    if stack.spec.output is OutputMode.RENDER or context is None:
        return []
    try:
        from kthena_components.cluster.api_kinds import check_kinds  # noqa: PLC0415
    except ImportError:  # the package is missing, or a different one of that name
        return []
    return check_kinds(stack.spec, stack.servings, context)
