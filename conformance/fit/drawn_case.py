"""Draws cases: several in a row use one world, so that few nodes change between them."""

import random
from collections.abc import Iterator

from conformance.fit.random_clusters import Case, World, draw_fillers, draw_queues, draw_world, vary
from conformance.fit.random_gangs import draw_gangs

ROUNDS = 6
"""Cases per world."""


def draw_cases(seed: int, number: int) -> Iterator[Case]:
    """Draw cases. One that is drawn alone equals the same one in a row."""
    for index in range(number):
        world_number = index // ROUNDS
        world = draw_world(_draw(f"world {seed} {world_number}"), f"w{world_number}")
        yield draw_case(_draw(f"case {seed} {index}"), world, f"case {index} of seed {seed}")


def draw_case(draw: random.Random, world: World, title: str) -> Case:
    """Draw one case of a world."""
    nodes = vary(draw, world)
    tiers = max((body["spec"]["tier"] for body in world.hyper_nodes), default=0)
    return Case(
        title=title,
        nodes=nodes,
        hyper_nodes=world.hyper_nodes,
        queues=draw_queues(draw, nodes),
        fillers=list(draw_fillers(draw, nodes)),
        gangs=draw_gangs(draw, tiers, len(nodes)),
        usual=draw.random() < 0.5,
    )


def _draw(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - to repeat, not to hide
