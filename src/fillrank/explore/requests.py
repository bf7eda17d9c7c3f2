"""Requests of the page: who may send them, what they request, and the responses."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import parse_qs, quote, urlsplit

from fillrank.errors import FillrankError
from fillrank.explore.uploads import MOST_BYTES, describe_for_page, fill
from fillrank.explore.views import ModelView, Order, Query, Shown, Side
from fillrank.posterior.recommend import By

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
_LONGEST_SEARCH = 500  # characters
_UPLOAD_CHUNK = 2**16  # bytes
_FORBIDDEN = (
    "This page is only for the person who started it: open the complete address that "
    "fillrank explore has printed, with its token."
)
_NOT_FOUND = "there is no such page."


class Response(NamedTuple):
    """A response to a request."""

    body: bytes
    content_type: str = _JSON
    status: int = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


class RefusedError(Exception):
    """A request is refused, with this status."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


class Handler(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    server: Explorer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # responses to older versions would have no headers
    server_version = "fillrank"
    sys_version = ""
    timeout = 60  # seconds without a byte
    upload_seconds = 60.0  # for a file, which comes from the same machine

    def do_GET(self) -> None:
        """Handle a request for the page, data or a file."""
        self._serve(self._get)

    def do_POST(self) -> None:
        """Handle an upload."""
        self._serve(self._post)

    def _refuse_method(self) -> None:
        def refuse() -> Response:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are allowed.")

        self._serve(refuse)

    def _serve(self, respond: Callable[[], Response]) -> None:
        """Check the request, compute the response and send it."""
        # The unread body of a request must not be parsed as the next request.
        has_body = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        if self.command != "POST" and has_body:
            self.close_connection = True
        try:
            self._check_sender()
            response = respond()
        except RefusedError as error:
            self.close_connection = True
            response = _error(error.status, error.message)
        except FillrankError as error:
            response = _error(HTTPStatus.UNPROCESSABLE_ENTITY, describe_for_page(error))
        except ConnectionError:
            raise
        except Exception:  # a bug must neither end the server nor be hidden  # noqa: BLE001
            traceback.print_exc()
            message = "an unexpected error occurred; the terminal shows it."
            response = _error(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        self._send(response)

    def _check_sender(self) -> None:
        """Reject requests that are not from the page, or from the person who opens it."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise RefusedError(HTTPStatus.FORBIDDEN, _FORBIDDEN)
        if self._opens_page():
            return
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        if site not in ("same-origin", "none") or not self._has_cookie():
            raise RefusedError(HTTPStatus.FORBIDDEN, _FORBIDDEN)

    def _opens_page(self) -> bool:
        """Whether the request is for the page itself, with the token in its address."""
        path, fields = self._parse_address()
        return path == "/" and self.server.is_token(fields.get("token", ""))

    def _has_cookie(self) -> bool:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return False
        return cookie is not None and self.server.is_token(cookie.value)

    def _parse_address(self) -> tuple[str, dict[str, str]]:
        """The path and the fields of the query; of several values the first."""
        try:
            parts = urlsplit(self.path)
            fields = parse_qs(parts.query, keep_blank_values=True, max_num_fields=8)
        except ValueError:
            return "", {}
        return parts.path, {name: values[0] for name, values in fields.items()}

    def _get(self) -> Response:
        path, fields = self._parse_address()
        if path in self.server.page:
            response = self.server.page[path]
            return response._replace(headers=(self._cookie(),)) if self._opens_page() else response
        if path == "/api/filled":
            return self._download(fields)
        return _json(get_data(self.server.view, path, fields))

    def _cookie(self) -> tuple[str, str]:
        server = self.server
        return "Set-Cookie", f"{server.cookie}={server.token}; HttpOnly; SameSite=Strict; Path=/"

    def _download(self, fields: dict[str, str]) -> Response:
        filled = self.server.filled.get(fields.get("of", ""))
        name = fields.get("file", "")
        if filled is None or name not in filled.files:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "this file is no longer available: fill it again."
            )
        header = f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
        return Response(
            filled.files[name],
            "text/csv; charset=utf-8",
            headers=(("Content-Disposition", header),),
        )

    def _post(self) -> Response:
        origin = self.headers.get("Origin", "")
        if origin not in {f"http://{host}" for host in self.server.hosts}:
            raise RefusedError(HTTPStatus.FORBIDDEN, _FORBIDDEN)
        path, fields = self._parse_address()
        if path != "/api/fill":
            raise RefusedError(HTTPStatus.NOT_FOUND, _NOT_FOUND)
        content = self._body()
        with self.server.filling:  # one upload at a time, because of the memory it takes
            filled = fill(self.server.view, fields.get("name", ""), content)
            key = self.server.store(filled)
        return _json(filled.about | {"of": key, "files": list(filled.files)})

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise RefusedError(
                HTTPStatus.LENGTH_REQUIRED, "the request must have the length of the file."
            )
        if len(length) > 12 or int(length) > MOST_BYTES:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the file is larger than {MOST_BYTES // 2**20} MB, the limit of this page. "
                "Split it; or use transform in Python.",
            )
        return self._read(int(length))

    def _read(self, n_bytes: int) -> bytes:
        """Read the body of the request, within the time limit."""
        content = bytearray()
        deadline = time.monotonic() + self.upload_seconds
        try:
            while len(content) < n_bytes:
                if (seconds := deadline - time.monotonic()) <= 0:
                    raise TimeoutError
                self.connection.settimeout(seconds)
                chunk = self.rfile.read1(min(n_bytes - len(content), _UPLOAD_CHUNK))
                if not chunk:
                    raise ConnectionResetError("the file ended early")
                content += chunk
        except TimeoutError as error:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the file did not arrive completely within {self.upload_seconds:g} seconds. Try again.",
            ) from error
        self.connection.settimeout(self.timeout)
        return bytes(content)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in (*_HEADERS.items(), *response.headers):
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Reject an invalid request in the format of all other responses."""
        self.close_connection = True
        self._send(_error(code, "this is not a valid request."))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests contain labels and the token."""


for _method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
    setattr(Handler, f"do_{_method}", Handler._refuse_method)


def get_data(view: ModelView, path: str, fields: dict[str, str]) -> dict[str, Any]:
    """The data for a request, or RefusedError raised."""
    if path == "/api/about":
        return view.about()
    if path not in ("/api/search", "/api/line", "/api/nearest", "/api/recommend"):
        raise RefusedError(HTTPStatus.NOT_FOUND, _NOT_FOUND)
    side: Side = _choice(fields, "side", get_args(Side))
    if path == "/api/search":
        return view.search(side, fields.get("part", "")[:_LONGEST_SEARCH])
    n = len(view.labels[side].texts)
    at = _whole_number(fields, "at", n - 1)
    if path == "/api/nearest":
        return view.nearest(side, at)
    if path == "/api/recommend":
        by: By = _choice(fields, "by", get_args(By))
        if side != "rows":
            raise RefusedError(HTTPStatus.NOT_FOUND, "recommendations are for rows.")
        return view.recommend(at, by)
    order: Order = _choice(fields, "order", get_args(Order))
    shown: Shown = _choice(fields, "shown", get_args(Shown))
    return view.line(side, at, Query(order, shown, _whole_number(fields, "start", 2**31)))


def _choice(fields: dict[str, str], name: str, allowed: tuple[str, ...]) -> Any:
    value = fields.get(name, allowed[0])
    if value not in allowed:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} must be one of {', '.join(allowed)}.")
    return value


def _whole_number(fields: dict[str, str], name: str, most: int) -> int:
    text = fields.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        raise RefusedError(HTTPStatus.NOT_FOUND, f"{name} must be from 0 to {most}.")
    return int(text)


def _json(value: dict[str, Any], status: int = HTTPStatus.OK) -> Response:
    # Without "<", the text has no tags even for a browser that ignores its content type.
    text = json.dumps(value, allow_nan=False).replace("<", "\\u003c")
    return Response(text.encode("ascii"), status=status)


def _error(status: int, message: str) -> Response:
    return _json({"error": message}, status)
