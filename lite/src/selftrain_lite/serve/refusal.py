"""A request that gets no answer: a status code, one line, and the kind of error."""

from __future__ import annotations

from collections.abc import Mapping

from selftrain_lite.errors import printable

KINDS = {
    400: "Empty",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "NotAllowed",
    408: "Timeout",
    413: "Validation",
    421: "Misdirected",
    422: "Validation",
    424: "Backend",
    429: "Overloaded",
    503: "Unhealthy",
}
"""The kinds of text-embeddings-inference, and some that it answers without a kind."""


class RefusedError(Exception):
    """A request that is refused; the message repeats nothing that a client sent as text."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = printable(message)
        self.headers = dict(headers or {})

    def content(self) -> dict[str, str]:
        """The JSON of the answer."""
        return {"error": self.message, "error_type": KINDS.get(self.status, "Backend")}
