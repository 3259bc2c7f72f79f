"""Writes the figures of docs/memory.md, and its picture. `make memory-docs` runs it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, median

from kthena_components.core.memory.estimate import Estimate
from tests.core.memory.start_ups import Measured, start_ups

ROOT = Path(__file__).parents[2]
PAGE, PICTURE = ROOT / "docs" / "memory.md", ROOT / "docs" / "memory.svg"
_BEGIN = "<!-- `make memory-docs` writes what follows from the start-ups. -->\n"
_END = "<!-- It ends here. -->\n"
_CLOSE = 2.5
"""GiB within which an estimate is close."""
_WIDER = 3
"""Bands above this are those of weights that are packed again."""
_WORST = 8
_HEAD = (
    "| start-ups | number | mean error, GiB | median | within 2.5 GiB | predicted less measured |"
)
_WIDTH, _EDGE, _MOST = 560, 48, 200.0


def render() -> str:
    """Return the page with the part that the start-ups give."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{_results()}\n{_END}{after}"


def _results() -> str:
    predicted, starts = known(), start_ups()
    return "\n".join(
        (
            f"{len(predicted)} of {len(starts)} state their cache and have a known model and GPU.",
            "",
            _HEAD,
            "|---|---|---|---|---|---|",
            *_rows(predicted),
            "",
            "The largest error of each model and GPU:",
            "",
            "| start-up | engine | GPU | model × ranks | predicted | measured |",
            "|---|---|---|---|---|---|",
            *_worst(predicted),
            "",
            _missed(starts),
            "",
        )
    )


def known() -> list[tuple[Measured, float, float]]:
    """Return the start-ups with a prediction: predicted and measured GiB of cache."""
    return [
        (start, estimate.cache, start.kv_gib)
        for start in start_ups()
        if start.kv_gib is not None and isinstance(estimate := start.estimate, Estimate)
    ]


def _rows(rows: list[tuple[Measured, float, float]]) -> Iterator[str]:
    used = [row for row in rows if not row[0].held_out]
    kept = [row for row in rows if row[0].held_out]
    groups = (
        *(
            (f"not used, {letter}", [row for row in kept if row[0].id.startswith(letter)])
            for letter in "hijkmpqrtuvwxyzgodfc"
        ),
        ("not used, all", kept),
        ("used, NVIDIA", [row for row in used if not _is_amd(row[0])]),
        ("used, AMD, dense", [row for row in used if _is_amd(row[0]) and not _is_moe(row[0])]),
        ("used, AMD, with experts", [row for row in used if _is_amd(row[0]) and _is_moe(row[0])]),
    )
    for name, members in groups:
        errors = [predicted - measured for _, predicted, measured in members]
        close = mean(abs(error) <= _CLOSE for error in errors)
        yield (
            f"| {name} | {len(members)} | {mean(map(abs, errors)):.2f} | "
            f"{median(map(abs, errors)):.2f} | {close:.0%} | "
            f"{mean(errors):+.2f} |"
        )


def _is_amd(start: Measured) -> bool:
    return start.gpu.startswith("AMD")


def _is_moe(start: Measured) -> bool:
    estimate = start.estimate
    return isinstance(estimate, Estimate) and estimate.band > _WIDER


def _worst(rows: list[tuple[Measured, float, float]]) -> Iterator[str]:
    """Return the worst start-up of each model and GPU."""
    worst: dict[tuple[str, str], tuple[Measured, float, float]] = {}
    for row in sorted(rows, key=lambda row: -abs(row[1] - row[2])):
        worst.setdefault((row[0].model, row[0].gpu), row)
    for start, predicted, measured in [*worst.values()][:_WORST]:
        yield (
            f"| {start.id} | {start.engine} {start.version} | {start.gpu} | {start.model} × "
            f"{start.tensor} | {predicted:.1f} | {measured:.1f} |"
        )


def _missed(starts: Iterable[Measured]) -> str:
    missed = [
        start.id
        for start in starts
        if not start.started
        and isinstance(estimate := start.estimate, Estimate)
        and estimate.verdict == "fits"
    ]
    verb = "are" if missed[1:] else "is"
    named = " and ".join(missed) or "none"
    return f"Of the engines that failed for memory, {named} {verb} said to fit."


def draw() -> str:
    """Return the picture: measured GiB to the right, predicted GiB up."""
    size = _WIDTH - 2 * _EDGE
    box = f'width="{_WIDTH}" height="{_WIDTH}" viewBox="0 0 {_WIDTH} {_WIDTH}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_WIDTH}" fill="white"/>',
        _line(0, 0, _MOST, _MOST, "#999"),
        _line(0, _CLOSE, _MOST - _CLOSE, _MOST, "#ddd"),
        _line(_CLOSE, 0, _MOST, _MOST - _CLOSE, "#ddd"),
    ]
    for tick in range(0, int(_MOST) + 1, 40):
        x, y = _at(tick, tick)
        parts.append(f'<text x="{x}" y="{_WIDTH - 28}" text-anchor="middle">{tick}</text>')
        parts.append(f'<text x="{_EDGE - 8}" y="{y + 4}" text-anchor="end">{tick}</text>')
    middle = _EDGE + size / 2
    parts.append(f'<text x="{middle}" y="{_WIDTH - 8}" text-anchor="middle">measured, GiB</text>')
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">predicted, GiB</text>'
    )
    legend = (("#d95f02", "not used"), ("#1f78b4", "used, NVIDIA"), ("#b2b2b2", "used, AMD"))
    for number, (colour, name) in enumerate(legend):
        parts.append(f'<circle cx="70" cy="{62 + 18 * number}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="80" y="{66 + 18 * number}">{name}</text>')
    for start, predicted, measured in known():
        x, y = _at(measured, predicted)
        colour = legend[0 if start.held_out else 2 if _is_amd(start) else 1][0]
        parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}" fill-opacity="0.7"/>')
    return "\n".join([*parts, "</svg>", ""])


def _at(measured: float, predicted: float) -> tuple[float, float]:
    scale = (_WIDTH - 2 * _EDGE) / _MOST
    return round(_EDGE + measured * scale, 1), round(_WIDTH - _EDGE - predicted * scale, 1)


def _line(left: float, low: float, right: float, high: float, colour: str) -> str:
    (x1, y1), (x2, y2) = _at(left, low), _at(right, high)
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>'


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    PICTURE.write_text(draw(), encoding="utf-8")
