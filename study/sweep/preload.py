"""The imports of a worker, made as soon as it starts: torch, Ray Tune and the study's own modules take seconds."""

from study.sweep.own_ray import say_ready

try:
    import study.sweep.worker  # noqa: F401
finally:
    say_ready()  # the first trial will report what could not be imported
