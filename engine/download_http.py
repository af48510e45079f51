"""HTTP for downloads: redirects that keep the token to one server, certificates, what failures mean."""

from __future__ import annotations

import importlib.util
import re
import ssl
import urllib.error
import urllib.request
from email.message import Message
from functools import cache
from http.client import HTTPException
from typing import IO
from urllib.parse import urlsplit

from engine.errors import DownloadError

_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_LONGEST_RETRY_AFTER = 120.0  # seconds; a server may ask for hours


class Interrupted(Exception):  # noqa: N818 - not a fault: the next attempt goes on from here
    """The transfer stopped for a reason that may pass; the server asks to `wait` so many seconds."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but sends the token to no other server: a storage server would also refuse it."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if request is not None:
            old, new = urlsplit(req.full_url), urlsplit(newurl)
            if (old.scheme, old.netloc) != (new.scheme, new.netloc):
                request.remove_header("Authorization")
        return request


@cache  # reading the certificates takes some 50 ms
def make_opener() -> urllib.request.OpenerDirector:
    """An opener that honours the proxy settings and checks certificates."""
    context = ssl.create_default_context()
    # A packaged program may not find the system's certificates; certifi comes with the hub's client.
    if importlib.util.find_spec("certifi") is not None:
        import certifi

        context.load_verify_locations(certifi.where())
    return urllib.request.build_opener(_Redirects, urllib.request.HTTPSHandler(context=context))


def classify(error: OSError | HTTPException, name: str) -> Interrupted | DownloadError:
    """What a failed connection for the file `name` means: worth another attempt, or final."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return DownloadError(
            f"“{name}” could not be downloaded safely.",
            why=f"The server's certificate was not accepted: {reason.verify_message}.",
            action="Check the computer's clock and any proxy or virus scanner that looks into connections.",
        )
    return Interrupted(str(reason) or type(reason).__name__)


def classify_status(error: urllib.error.HTTPError, name: str) -> Interrupted | DownloadError:
    """What an answer that is not the file `name` means: worth another attempt, or final."""
    if error.code in _RETRIED:
        return Interrupted(f"the server answered {error.code} {error.reason}", _retry_after(error.headers))
    if error.code in (401, 403):
        return DownloadError(
            f"The server does not give “{name}” to you.",
            why=f"It answered {error.code} {error.reason}.",
            action="Accept the model's terms on its page, and sign in with a token that may read it.",
        )
    if error.code == 404:
        return DownloadError(
            f"The server has no file “{name}”.",
            why="It was listed, but it may have been removed since.",
            action="Start the download again.",
        )
    return DownloadError(
        f"“{name}” could not be downloaded.",
        why=f"The server answered {error.code} {error.reason}.",
        action="Try again later.",
    )


def _retry_after(headers: Message) -> float:
    """The seconds of a Retry-After header; 0 without one, or where it gives a date."""
    value = headers.get("Retry-After", "")
    return min(float(value), _LONGEST_RETRY_AFTER) if value.isdecimal() else 0.0


def content_range(headers: Message) -> tuple[int, int] | None:
    """First byte and total size out of `Content-Range: bytes 5-9/10`; None if it is missing or different."""
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", "").strip())
    return (int(match[1]), int(match[2])) if match else None
