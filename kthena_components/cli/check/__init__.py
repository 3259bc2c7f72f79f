"""The command `check`: reads files, checks each object, then all objects together."""
