"""Specs, plans and rules. Pure: no Pulumi, no I/O, no clock."""
