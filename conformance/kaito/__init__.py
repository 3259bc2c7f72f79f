"""KAITO: its controller and webhooks, against our presets, rules and plans."""
