"""Functions that remember what they gave: for the same object, and for no equal one."""

from kthena_components.core.values.caches import cached_by_object, cached_by_text, cached_last


def test_a_function_of_objects_is_called_once_for_each_object() -> None:
    calls: list[list[int]] = []

    @cached_by_object(2)
    def total(numbers: list[int], *, times: int = 1) -> int:
        calls.append(numbers)
        return times * sum(numbers)

    first, equal = [1, 2], [1, 2]
    assert [total(first), total(equal), total(first)] == [3, 3, 3]
    assert len(calls) == 2
    assert calls[0] is first
    assert calls[1] is equal
    assert total(first, times=2) == 6  # another result, which drops one of the two
    assert len(calls) == 3


def test_the_last_object_alone_is_remembered() -> None:
    calls: list[object] = []

    @cached_last
    def shown(value: list[int]) -> str:
        calls.append(value)
        return repr(value)

    first, second = [1], [1]
    results = [shown(first), shown(first), shown(second), shown(first)]
    assert results == [repr(first), repr(first), repr(second), repr(first)]
    assert [call is first for call in calls] == [True, False, True]


def test_long_texts_are_not_remembered() -> None:
    calls: list[str] = []

    @cached_by_text
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    long = "a" * 257
    assert [length("a"), length("a"), length(long), length(long)] == [1, 1, 257, 257]
    assert calls == ["a", long, long]
