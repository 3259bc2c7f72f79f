"""Serves the provider: `python -m kthena_components.provider ADDRESS`, as the engine starts it."""

from kthena_components.provider.host import run

if __name__ == "__main__":
    run()
