"""Every test is deterministic: property tests draw the same examples in every run."""

from hypothesis import settings

settings.register_profile("study", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("study")
