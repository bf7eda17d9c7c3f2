"""The server of the page, for the person who started it, on this machine.

It listens on 127.0.0.1 only. Other programs and web pages on the same machine can reach that address,
so each request must have

- the token: in the printed address, and then in a cookie that scripts cannot read;
- the name of this server as its host, against DNS rebinding by other names that lead here;
- this page as its origin, if the browser reports the origin: browsers send cookies to all ports of a
  machine, from pages of any port.

Requested files are looked up among fixed names: no request is used as a path in the file system.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import socketserver
import sys
from collections import OrderedDict
from contextlib import suppress
from http.server import ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from typing import Any

from fillrank.errors import InputError
from fillrank.explore.requests import Handler, Response
from fillrank.explore.uploads import FilledFile
from fillrank.explore.views import ModelView

HOST = "127.0.0.1"
_CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE = ("index.html", "app.js", "parts.js", "search.js", "fill.js", "style.css", "icon.svg")
_MOST_STORED = 3  # filled files, for download


class Explorer(ThreadingHTTPServer):
    """Serves the page of a model until it is closed.

    Parameters
    ----------
    view : ModelView
    port : int
        With 0, a free port is chosen.
    """

    daemon_threads = True
    # On Windows this would share the port with other programs.
    allow_reuse_address = os.name != "nt"

    def __init__(self, view: ModelView, port: int = 0):
        self.view = view
        self.token = secrets.token_urlsafe(32)
        folder = files("fillrank.explore") / "page"
        self.page = {
            f"/{name}".removesuffix("index.html"): Response(
                (folder / name).read_bytes(), _CONTENT_TYPES[name.rpartition(".")[2]]
            )
            for name in _PAGE
        }
        self.filled: OrderedDict[str, FilledFile] = OrderedDict()
        self.filling = Lock()
        self._connections: set[Any] = set()
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"port {port} cannot be used: {reason}",
                advice="Choose another port, or 0 for any free port.",
            ) from error
        own = [f"{name}:{self.server_port}" for name in (HOST, "localhost")]
        self.hosts = {*own, HOST, "localhost"} if self.server_port == 80 else set(own)
        self.cookie = f"fillrank-{self.server_port}"  # cookies are shared by all ports of a machine

    def server_bind(self) -> None:
        """Bind the port without looking up the host name, which can take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @property
    def url(self) -> str:
        """The address to open; anyone who has it can see the model."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    def is_token(self, text: str) -> bool:
        """Whether a text is the token, compared in constant time."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    def store(self, filled: FilledFile) -> str:
        """Store filled files for download, the last few; return their key."""
        key = secrets.token_urlsafe(8)
        self.filled[key] = filled
        while len(self.filled) > _MOST_STORED:
            self.filled.popitem(last=False)
        return key

    def process_request(self, request: Any, client_address: Any) -> None:
        """Register a connection, which may have many requests."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Reject new connections, and end those that wait for a next request."""
        super().server_close()
        for request in list(self._connections):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnect or time out."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)
