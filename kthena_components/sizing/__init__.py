"""Finds how a model can be split over GPUs: every shape of an engine that passes the rules."""

from kthena_components.sizing.answer import Answer, Impossible, Row, find_shapes
from kthena_components.sizing.question import Question
from kthena_components.sizing.shapes import Shape

__all__ = ["Answer", "Impossible", "Question", "Row", "Shape", "find_shapes"]
