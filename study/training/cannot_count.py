"""A trial whose memory cannot be counted."""


class CannotCount(Exception):
    """A network or a loss looks at values where it is built or trained, which are not there."""
