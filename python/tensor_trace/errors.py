"""What can be wrong with a session. Every message says what to do."""

from __future__ import annotations


class SessionError(Exception):
    """A session cannot be read, or does not contain what was asked for."""


class MissingSession(SessionError, FileNotFoundError):
    """There is no such file."""

    def __str__(self) -> str:
        return str(self.args[0])


class DamagedSession(SessionError):
    """The file is not a session, or a part of it has wrong values."""


class NewerVersion(SessionError):
    """The file was written by a newer version of tensor-trace."""


class RunningSession(SessionError):
    """The session is still being recorded, or its recording was killed."""


class NoData(SessionError):
    """The session was recorded without these data."""
