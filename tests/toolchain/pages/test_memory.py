"""docs/memory.md and its picture are what the published start-ups give."""

from toolchain.pages import memory


def test_the_page_of_memory_is_current() -> None:
    """`make memory-docs` writes it."""
    assert memory.PAGE.read_text() == memory.render()


def test_the_picture_is_current_and_has_a_point_for_each_start_up() -> None:
    picture = memory.draw()

    assert memory.PICTURE.read_text() == picture
    assert picture.count('r="3"') == len(memory.known()) > 100
