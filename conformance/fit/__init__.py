"""Compares the predicted placement of gangs with the choice of Volcano's scheduler."""
