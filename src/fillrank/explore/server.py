"""The page's server: for the person who started it, on this machine, and for nobody else.

It listens on 127.0.0.1 alone. Other programs and web pages of the same machine can reach that address,
so each request must show

- the token: in the address that is printed, and then in a cookie that scripts cannot read;
- this server's own name as its host, which a name of someone else that leads here (DNS rebinding)
  does not have;
- that it comes from the page itself, if the browser says where from: cookies are sent to all ports of a
  machine by pages of any of them.

What is asked for is looked up among fixed names: no request makes a path in the file system.
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
from fillrank.explore.answers import Answers
from fillrank.explore.filling import Filled
from fillrank.explore.handler import Handler, Reply

HOST = "127.0.0.1"
_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE = ("index.html", "app.js", "parts.js", "search.js", "fill.js", "style.css", "icon.svg")
_MOST_KEPT = 3  # filled files, for download


class Explorer(ThreadingHTTPServer):
    """Serves the page of a model until it is closed.

    Parameters
    ----------
    answers : Answers
    port : int
        0 takes one that is free.
    """

    daemon_threads = True
    # On Windows that would share the port with whoever else asks for it.
    allow_reuse_address = os.name != "nt"

    def __init__(self, answers: Answers, port: int = 0):
        self.answers = answers
        self.token = secrets.token_urlsafe(32)
        folder = files("fillrank.explore") / "page"
        self.page = {
            f"/{name}".removesuffix("index.html"): Reply(
                (folder / name).read_bytes(), _KINDS[name.rpartition(".")[2]]
            )
            for name in _PAGE
        }
        self.kept: OrderedDict[str, Filled] = OrderedDict()
        self.filling = Lock()
        self._connections: set[Any] = set()
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"port {port} cannot be used: {reason}. Name another; without --port, a free one is "
                "taken."
            ) from error
        own = [f"{name}:{self.server_port}" for name in (HOST, "localhost")]
        self.hosts = {*own, HOST, "localhost"} if self.server_port == 80 else set(own)
        self.cookie = f"fillrank-{self.server_port}"  # cookies are shared by all ports of a machine

    def server_bind(self) -> None:
        """Take the port; without the look-up of a name, which can take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @property
    def url(self) -> str:
        """The address to open: whoever has it can see the model."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    def is_token(self, text: str) -> bool:
        """Whether a text is the token; how long that takes says nothing about it."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    def keep(self, filled: Filled) -> str:
        """Keep filled files for download, the last few; return where."""
        number = secrets.token_urlsafe(8)
        self.kept[number] = filled
        while len(self.kept) > _MOST_KEPT:
            self.kept.popitem(last=False)
        return number

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection: it may last for many requests."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Let go of a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Take no further connection, and end those that wait for a next request."""
        super().server_close()
        for request in list(self._connections):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away, or says nothing, is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)
