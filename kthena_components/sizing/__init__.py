"""Finds how a model can be split over GPUs: every shape of an engine that passes the rules."""

from kthena_components.sizing.answer import Answer, Impossible, Row, find_shapes
from kthena_components.sizing.question_and_shapes import Question, Shape

__all__ = ["Answer", "Impossible", "Question", "Row", "Shape", "find_shapes"]
