"""What is made of the measurements, on made-up ones."""

from bench.checking import CheckCost
from bench.engine import Run
from bench.growth import Growth
from bench.imports import ONE_CHECK
from bench.packs import PackCost
from bench.programs import Case, Comparison
from bench.report import Report


def run(seconds: float) -> Run:
    return Run(
        seconds=seconds + 1, total=seconds, start=0.5, program=seconds, cpu=seconds, memory=100
    )


def comparison(servings: int, raw: list[float], package: list[float]) -> Comparison:
    case = Case(command="preview", backend="native", servings=servings, repeats=3, warm=0)
    return Comparison(
        case=case,
        resources=servings,
        same=None,
        raw=[run(seconds) for seconds in raw],
        package=[run(seconds) for seconds in package],
    )


def report(
    *programs: Comparison,
    package_import: float = 225,
    pack: float = 1.05,
    check: float = 2.0,
    grown: float = 20,
    start: float = 300,
) -> Report:
    return Report(
        programs=programs,
        imports={"pulumi": 150, "kthena_components": package_import, ONE_CHECK: start},
        modules=[("pydantic", 20)],
        compile={"native": 600},
        commands={"up": {"start": 1, "program": 2, "rest": 3, "seconds": 6}},
        packs=PackCost(servings=1000, empty=[2.0, 4.0], ours=[pack * 2, pack * 4]),
        checks=[
            CheckCost(title="good", objects=9, budget=2.0, parse=[1, 2], check=[check, check * 2])
        ],
        shapes=[Growth(name=name, small=1, large=g) for name, g in (("a", 9), ("b", grown))],
    )


LINEAR = [comparison(n, [n / 10], [n / 10 + 0.1]) for n in (1, 100, 300)]


def test_a_ratio_compares_medians() -> None:
    assert comparison(1, raw=[9, 2, 1], package=[3, 1, 4]).ratio("total") == 1.5


def test_linear_growth_is_one() -> None:
    assert {round(ratio, 2) for ratio in report(*LINEAR).data()["growth"].values()} == {1}


def test_quadratic_growth_is_more() -> None:
    grown = [comparison(size, [size**2], [size**2]) for size in (1, 100, 300)]
    assert report(*grown).data()["growth"]["native package"] > 3


def test_budgets_are_checked_at_the_largest_size() -> None:
    text = report(*LINEAR).text()
    assert "processor time ≤ 1.05 × raw, preview of 300 on native" in text
    assert "missed" not in text


def test_a_missed_budget_is_said() -> None:
    slow = comparison(300, [10], [12])
    missed = report(slow, package_import=226, pack=1.1, check=2.1, grown=21, start=301)
    assert missed.text().count("missed") == 6


def test_every_measurement_has_its_row() -> None:
    rows = {tuple(cell.strip() for cell in line.split("|")) for line in lines(report(*LINEAR))}
    starts = {row[1:4] for row in rows}
    assert {("preview", "native", "1"), ("preview", "native", "300")} <= starts
    assert ("kthena_components", "225", "75") in starts
    assert ("up", "1", "2") in starts
    assert ("b", "1000", "20000") in starts


def lines(made: Report) -> list[str]:
    return made.text().splitlines()
