"""Requests: who may ask, what is asked, and how the answer goes back."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from fillrank.errors import FillrankError
from fillrank.explore.asked import RefusedError, answer
from fillrank.explore.filling import MOST_BYTES, fill

if TYPE_CHECKING:
    from fillrank.explore.server import Explorer

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_JSON = "application/json"
_AT_ONCE = 2**16  # bytes of a file
_NOT_YOURS = (
    "This page is for the person who started it: open the whole address that "
    "fillrank explore has printed, with its token."
)


class Reply(NamedTuple):
    """What goes back."""

    body: bytes
    kind: str = _JSON
    status: int = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    server: Explorer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # older ones would get answers without any header
    server_version = "fillrank"
    sys_version = ""
    timeout = 60  # seconds without a byte
    upload_seconds = 60.0  # for a whole file, which comes from the same machine

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def _not_allowed(self) -> None:
        def refuse() -> Reply:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are known here.")

        self._serve(refuse)

    def _serve(self, work: Callable[[], Reply]) -> None:
        """Do the work if the request may ask for it, and send what comes of it."""
        # What is not read of a request must not be taken for the next one.
        has_body = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        if self.command != "POST" and has_body:
            self.close_connection = True
        try:
            self._check_source()
            reply = work()
        except RefusedError as error:
            self.close_connection = True
            reply = _complaint(error.status, str(error))
        except FillrankError as error:
            reply = _complaint(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except ConnectionError:
            raise
        except Exception:  # a bug must not end the page, nor be hidden
            traceback.print_exc()
            words = "this should not have happened; the terminal shows what it was."
            reply = _complaint(HTTPStatus.INTERNAL_SERVER_ERROR, words)
        self._send(reply)

    def _check_source(self) -> None:
        """Refuse whoever is not the page, or the person who opens it."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise RefusedError(HTTPStatus.FORBIDDEN, _NOT_YOURS)
        if self._opens_page():
            return
        source = self.headers.get("Sec-Fetch-Site", "same-origin")
        if source not in ("same-origin", "none") or not self._has_cookie():
            raise RefusedError(HTTPStatus.FORBIDDEN, _NOT_YOURS)

    def _opens_page(self) -> bool:
        """Whether the request is for the page itself, with the token in its address."""
        path, asked = self._asked()
        return path == "/" and self.server.is_token(asked.get("token", ""))

    def _has_cookie(self) -> bool:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return False
        return cookie is not None and self.server.is_token(cookie.value)

    def _asked(self) -> tuple[str, dict[str, str]]:
        """The path, and what is asked about: of several values the first."""
        try:
            parts = urlsplit(self.path)
            asked = parse_qs(parts.query, keep_blank_values=True, max_num_fields=8)
        except ValueError:
            return "", {}
        return parts.path, {name: values[0] for name, values in asked.items()}

    def _get(self) -> Reply:
        path, asked = self._asked()
        if path in self.server.page:
            reply = self.server.page[path]
            return reply._replace(headers=(self._cookie(),)) if self._opens_page() else reply
        if path == "/api/filled":
            return self._download(asked)
        return _json(answer(self.server.answers, path, asked))

    def _cookie(self) -> tuple[str, str]:
        server = self.server
        return "Set-Cookie", f"{server.cookie}={server.token}; HttpOnly; SameSite=Strict; Path=/"

    def _download(self, asked: dict[str, str]) -> Reply:
        kept = self.server.kept.get(asked.get("of", ""))
        name = asked.get("file", "")
        if kept is None or name not in kept.files:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "this file is not here any more: fill it again."
            )
        header = f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
        return Reply(
            kept.files[name], "text/csv; charset=utf-8", headers=(("Content-Disposition", header),)
        )

    def _post(self) -> Reply:
        origin = self.headers.get("Origin", "")
        if origin not in {f"http://{host}" for host in self.server.hosts}:
            raise RefusedError(HTTPStatus.FORBIDDEN, _NOT_YOURS)
        path, asked = self._asked()
        if path != "/api/fill":
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here.")
        content = self._body()
        with self.server.filling:  # one at a time: each may take much memory
            filled = fill(self.server.answers, asked.get("name", ""), content)
            number = self.server.keep(filled)
        return _json(filled.about | {"of": number, "files": list(filled.files)})

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "the length of the file must be said.")
        if len(length) > 12 or int(length) > MOST_BYTES:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the file is larger than {MOST_BYTES // 2**20} MB, the most that can be filled here. "
                "Part it; or use transform in Python.",
            )
        return self._read(int(length))

    def _read(self, n_bytes: int) -> bytes:
        """So many bytes of the request, if they come in time."""
        content = bytearray()
        deadline = time.monotonic() + self.upload_seconds
        try:
            while len(content) < n_bytes:
                if (seconds := deadline - time.monotonic()) <= 0:
                    raise TimeoutError
                self.connection.settimeout(seconds)
                part = self.rfile.read1(min(n_bytes - len(content), _AT_ONCE))
                if not part:
                    raise ConnectionResetError("the file ended early")
                content += part
        except TimeoutError as error:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the file did not come whole within {self.upload_seconds:g} seconds. Try again.",
            ) from error
        self.connection.settimeout(self.timeout)
        return bytes(content)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in (*_HEADERS.items(), *reply.headers):
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is not even a request, in the same form as all else."""
        self.close_connection = True
        self._send(_complaint(code, "this is no request that is known here."))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests have names in them, and the token."""


# All other methods that have a name are refused alike.
for _method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
    setattr(Handler, f"do_{_method}", Handler._not_allowed)


def _json(value: dict[str, Any], status: int = HTTPStatus.OK) -> Reply:
    # A browser that takes the text for a page, against all that it is told, must not find a tag in it.
    text = json.dumps(value, allow_nan=False).replace("<", "\\u003c")
    return Reply(text.encode("ascii"), status=status)


def _complaint(status: int, message: str) -> Reply:
    return _json({"error": message}, status)
