"""Volcano: its scheduler and webhook, against our gangs, topologies and rules."""
