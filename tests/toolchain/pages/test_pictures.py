"""docs/pictures.md and its picture are drawn from the example."""

from toolchain.pages import pictures


def test_the_page_and_the_picture_are_current() -> None:
    """`make pictures` writes them."""
    assert pictures.PAGE.read_text(encoding="utf-8") == pictures.render()
    assert pictures.PICTURE.read_text(encoding="utf-8") == pictures.draw()


def test_the_example_places_no_more_than_the_nodes_hold() -> None:
    racks = pictures.example().racks
    assert all(node.used <= node.gpus for rack in racks for node in rack.nodes)
