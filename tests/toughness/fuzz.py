"""`python -m tests.toughness.fuzz TARGET START COUNT`: take in drawn inputs, in its own process.

It looks for what raises, for rules that fail, for what takes for ever, and for what touches files,
processes or the network. The seed is KTHENA_SEED.
"""

import argparse
import faulthandler
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from kthena_components.core import findings
from tests.toughness.audit import Watch
from tests.toughness.guard import SEED, HangError, no_hang, shown
from tests.toughness.targets import TARGETS, Target

_WARM, _MOST = 60, 8
"""Inputs that come before anything is looked at, since they load modules; faults that are told."""
_STUCK = 120
"""Seconds of processor time for 500 inputs, which take two. After them the process ends: a call
into C does not return. Not seconds of the clock: conformance runs this at a low priority."""
_ASLEEP = 1800
"""Seconds of the clock for the same inputs, in case that something waits for ever."""


class RuleFaultError(BaseException):
    """A rule failed. No guard of ours around a rule catches it."""


def drawn(target: str, number: int) -> random.Random:
    """Give what one input is drawn from."""
    return random.Random(f"{SEED}-{target}-{number}")


def main() -> int:
    """Take the inputs in; 1 where one is a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("start", type=int)
    parser.add_argument("count", type=int)
    asked = parser.parse_args()
    findings._raised = _fail
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(asked.start, asked.start + asked.count)
        faults = list(_run(asked.target, numbers, Path(folder)))
    sys.stdout.write("\n\n".join(faults) or f"{asked.count} {asked.target}: nothing\n")
    return int(bool(faults))


def _run(name: str, numbers: range, folder: Path) -> Iterator[str]:
    target = TARGETS[name]
    for number in range(-_WARM, 0):
        _first(target, name, number, folder)
    watch, told = Watch(folder), set[str]()
    faulthandler.register(signal.SIGPROF, chain=True)  # tells the place, and then the process ends
    for number in numbers:
        if number % 500 == 0:
            signal.setitimer(signal.ITIMER_PROF, _STUCK)
            faulthandler.dump_traceback_later(_ASLEEP, exit=True)
        given = target.make(drawn(name, number), folder, number)
        error = _take(target, given, folder, watch)
        place = "".join(traceback.format_tb(error.__traceback__)[-2:]) if error else ""
        if error and place not in told:
            told.add(place)
            tail = "".join(traceback.format_exception(error, limit=-6))
            yield f"KTHENA_SEED={SEED} {name} {number}: {tail}{shown(given)}"
        if len(told) == _MOST:
            return
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.cancel_dump_traceback_later()
    if watch.seen:
        yield f"KTHENA_SEED={SEED} {name}: touched {watch.seen}"


def _first(target: Target, name: str, number: int, folder: Path) -> None:
    try:
        target.take(target.make(drawn(name, number), folder, number), folder)
    except (Exception, RuleFaultError):  # noqa: BLE001 - another one will show it as well
        return


def _take(target: Target, given: Any, folder: Path, watch: Watch) -> BaseException | None:
    try:
        with no_hang(given), watch.looking():
            target.take(given, folder)
    except (Exception, HangError, RuleFaultError) as error:  # noqa: BLE001 - whatever it is
        return error
    return None


def _fail(error: Exception) -> NoReturn:
    raise RuleFaultError from error


if __name__ == "__main__":
    sys.exit(main())
