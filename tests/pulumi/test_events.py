from tests.support.engine import read_events


def test_half_a_line_of_a_killed_engine_is_no_event() -> None:
    assert read_events('{"sequence": 1}\n{"sequence": 2}\n{"sequ') == [
        {"sequence": 1}, {"sequence": 2},
    ]  # fmt: skip
    assert read_events("") == []
