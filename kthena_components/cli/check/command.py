"""`kthena-components check`: reads its options, checks the files, and writes the findings."""

import argparse
import gc
import sys
from collections.abc import Sequence
from dataclasses import replace

from kthena_components.checker.check_cluster_objects import StackOptions
from kthena_components.checker.levels import SettingError, Settings, parse_releases
from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.reports import FORMATS, Report
from kthena_components.cli.check.results import Summary
from kthena_components.cli.check.workers import WorkerError
from kthena_components.cli.main import ERROR, PROBLEM, SUCCESS
from kthena_components.cli.settings import ModelConfigError, read_settings, read_shapes
from kthena_components.cli.terminal import Progress
from kthena_components.core.findings import count_of, suggest, today
from kthena_components.core.hardware import parse_choice
from kthena_components.core.schema.versions import NAMED, VERSIONS
from kthena_components.core.values.display import visible
from kthena_components.core.values.unknown import Unknown
from kthena_components.reading.files import Unreadable

_OBJECTS = 1_000_000


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the files, or print rules for --rules and --explain; return the exit status."""
    try:
        settings = _settings(asked)
        text = _about_rules(asked, parser)
        shapes = read_shapes(asked.model_config)
    except (ModelConfigError, SettingError) as error:
        parser.exit(ERROR, f"{parser.prog}: {visible(str(error))}\n")
    if text is not None:
        sys.stdout.write(f"{text}\n")
        return SUCCESS
    if not asked.paths:
        parser.error("give a file, a folder, or - for standard input")
    # Almost all objects are freed with their document and none is in a cycle, so the collector
    # would waste a tenth of the time, and 2 % if it came after every 50,000.
    gc.set_threshold(_OBJECTS, 20, 20)
    types = tuple(word.strip() for word in asked.gpu_types.split(",") if word.strip())
    given = CheckOptions(
        settings=settings,
        # In UTC, so that a waiver expires for everybody at the same time.
        today=today(),
        asked=StackOptions(
            whole=asked.whole,
            budget=settings.gpu_budget if asked.gpu_budget is None else asked.gpu_budget,
            gpu_types=types or settings.gpu_types,
            versions=settings.versions,
        ),
        shapes=shapes,
        render=asked.render,
        jobs=asked.jobs,
        strict_read=asked.strict_read,
    )
    try:
        return _run(asked.paths, given, FORMATS[asked.format](sys.stdout.write))
    except WorkerError as error:
        parser.exit(ERROR, f"{parser.prog}: {error}\n")


def _settings(asked: argparse.Namespace) -> Settings:
    """Read the levels, the releases and the GPUs that the options name."""
    named = {system: getattr(asked, f"{system}_version") for system in NAMED}
    versions = {
        **parse_releases(_releases(asked.release)),
        **{k: v for k, v in named.items() if v is not None},
    }
    settings = read_settings(asked.level, versions)
    choice = parse_choice(asked.gpu)
    if isinstance(choice, Unknown):
        raise SettingError(f"--gpu: {choice.because}")
    return replace(settings, gpus=choice) if choice else settings


def _releases(words: Sequence[str]) -> dict[str, str]:
    """Read the values of --release."""
    found: dict[str, str] = {}
    for word in words:
        system, _, version = word.partition("=")
        if system not in VERSIONS:
            raise SettingError(f"--release {word}: there is no '{system}'; "
                               f"{suggest(system, VERSIONS)}")  # fmt: skip
        if not version:
            newest = f"{system}={VERSIONS[system][-1]}"
            raise SettingError(f"--release {word}: write SYSTEM=VERSION, such as {newest}")
        if found.setdefault(system, version) != version:
            raise SettingError(f"--release: {system} is {found[system]} and {version}: keep one")
    return found


def _about_rules(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> str | None:
    """Return the text for --rules or --explain; None without these options."""
    if not asked.rules and asked.explain is None:
        return None
    # Imported here, because the documentation of all rules takes longer than to check an object.
    from kthena_components.checker.catalogue import UnknownRuleError, explain, find_rule, list_rules  # noqa: PLC0415

    try:
        text = "" if asked.explain is None else explain(find_rule(asked.explain))
    except UnknownRuleError as error:
        parser.exit(ERROR, f"{parser.prog}: {visible(str(error))}\n")
    return list_rules() if asked.rules else text


def _run(paths: Sequence[str], given: CheckOptions, report: Report) -> int:
    """Check the paths, write each result, and return the exit status."""
    summary = Summary()
    with Progress(sys.stderr, lambda: f"checked {count_of(summary.objects, 'object')}") as progress:
        found = check(paths, given, summary)
        # Of several processes, one may be killed. Then nothing is written, and not a part.
        for result in found if given.jobs == 1 else list(found):
            with progress.pause():
                if isinstance(result, Unreadable):
                    sys.stderr.write(f"{visible(str(result))}\n")
                    report.skip(result)
                else:
                    report.add(result)
    if summary.checked_with:
        sys.stderr.write(f"{visible(summary.checked_with)}\n")
    report.close(summary)
    sys.stdout.flush()
    if summary.unreadable or summary.faults:
        return ERROR
    return PROBLEM if summary.mandatory else SUCCESS
