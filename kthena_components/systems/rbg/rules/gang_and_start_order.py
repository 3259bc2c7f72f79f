"""Checks of gangs, and that roles which form one engine do not wait for each other to be ready."""
