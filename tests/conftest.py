"""Settings of every test."""

from hypothesis import settings

# A loaded machine is slow, not wrong: a test never depends on wall time.
settings.register_profile("project", deadline=None)
settings.load_profile("project")
