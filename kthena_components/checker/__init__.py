"""Runs the rules over manifests, stacks and updates."""
