import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from fillrank.errors import InputError
from fillrank.explore import requests
from fillrank.explore.requests import Handler
from fillrank.explore.server import Explorer
from fillrank.explore.uploads import MOST_BYTES
from fillrank.explore.views import ModelView
from helpers.explorer_models import HOSTILE, hostile, served, survey

CSV = b"who,apple,tea\nZoe,4.1,\nAl,,2.5\n"


@pytest.fixture(scope="module")
def server():
    with served(survey()) as server:
        yield server


@pytest.fixture(scope="module")
def hostile_server():
    with served(hostile()) as server:
        yield server


class Reply:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)


def own(server):
    """The headers of a request by the page itself."""
    return {"Cookie": f"{server.cookie}={server.token}", "Sec-Fetch-Site": "same-origin"}


def request(server, path, method="GET", headers=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        headers = own(server) if headers is None else headers
        connection.request(method, path, body=body, headers=headers)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def post(server, content, name="new.csv", **headers):
    origin = {"Origin": f"http://127.0.0.1:{server.server_port}"}
    return request(
        server, f"/api/fill?name={quote(name)}", "POST", own(server) | origin | headers, content
    )


def raw(server, text):
    """The first line of the answer to bytes as they are."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(text)
        return connection.makefile("rb").readline()


def test_listens_on_the_local_address_only(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_the_printed_address_opens_the_page_and_gives_the_cookie(server):
    path = server.url.partition(str(server.server_port))[2]
    reply = request(server, path, headers={})
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/html")
    cookie = reply.headers["Set-Cookie"]
    assert cookie.startswith(f"{server.cookie}={server.token};")
    for word in ("HttpOnly", "SameSite=Strict"):
        assert word in cookie
    assert "Set-Cookie" not in request(server, "/").headers
    # A link from another place may open it, too: it has the token.
    assert request(server, path, headers={"Sec-Fetch-Site": "cross-site"}).status == 200


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/api/about", "/api/search", "/x"])
@pytest.mark.parametrize("token", [None, "", "wrong", "é", "a" * 5000])
def test_requests_without_the_token_are_rejected(server, path, token):
    cookies = {} if token is None else {"Cookie": f"{server.cookie}={quote(token)}"}
    reply = request(server, path, headers=cookies)
    assert reply.status == 403
    assert "Set-Cookie" not in reply.headers
    assert server.token.encode() not in reply.body
    if token is not None:
        assert request(server, f"{path}?token={quote(token)}", headers={}).status == 403


def test_the_token_in_an_address_is_valid_only_for_the_page(server):
    assert request(server, f"/api/about?token={server.token}", headers={}).status == 403


def test_cookies_of_another_port_are_ignored(server):
    assert request(server, "/", headers={"Cookie": f"fillrank-1={server.token}"}).status == 403
    assert request(server, "/", headers={"Cookie": f"fillrank={server.token}"}).status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""],
)
def test_other_names_for_this_server_are_refused(server, host):
    headers = own(server) | {"Host": host.format(port=server.server_port)}
    assert request(server, "/api/about", headers=headers).status == 403
    assert request(server, f"/?token={server.token}", headers=headers).status == 403


def test_names_of_this_machine_are_accepted(server):
    for host in ("127.0.0.1", "localhost", "LOCALHOST"):
        headers = own(server) | {"Host": f"{host}:{server.server_port}"}
        assert request(server, "/api/about", headers=headers).status == 200


def test_two_hosts_or_none_are_refused(server):
    own_host = f"Host: 127.0.0.1:{server.server_port}\r\n"
    cookie = f"Cookie: {server.cookie}={server.token}\r\n"
    for hosts, status in ((own_host, b"200"), ("", b"403"), (own_host + "Host: evil\r\n", b"403")):
        assert status in raw(server, f"GET / HTTP/1.1\r\n{hosts}{cookie}\r\n".encode())


@pytest.mark.parametrize("source", ["cross-site", "same-site", "nonsense"])
def test_other_pages_are_refused_even_with_the_cookie(server, source):
    headers = own(server) | {"Sec-Fetch-Site": source}
    assert request(server, "/api/about", headers=headers).status == 403
    assert post(server, CSV, **headers).status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:1"])
def test_only_files_of_the_page_are_served(server, origin):
    assert post(server, CSV, Origin=origin).status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/page/index.html",
        "/index.html",
        "//etc/passwd",
        "/app.js/../../server.py",
        "/server.py",
        "/%00",
        "/api",
        "/api/",
        "/api/fill",
        "/api/filled",
        "/api/filled?of=../x&file=/etc/passwd",
        "/api/about/x",
        "/favicon.ico",
    ],
)
def test_unknown_paths_are_not_found(server, path):
    reply = request(server, path)
    assert reply.status == 404
    assert "root:" not in reply.body.decode()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(server, method):
    reply = request(server, "/api/about", method)
    assert reply.status == 405
    assert "Access-Control-Allow-Origin" not in reply.headers
    assert request(server, "/api/about", method, headers={}).status == 403


def test_invalid_requests_are_rejected(server):
    assert raw(server, b"NONSENSE / HTTP/1.1\r\n\r\n").split()[1] == b"501"
    assert raw(server, b"GET / HTTP/9.9\r\n\r\n").split()[1] == b"505"
    assert raw(server, b"\x16\x03\x01\x02\x00\r\n\r\n")  # a greeting of TLS
    assert raw(server, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n").split()[1] == b"414"
    assert request(server, "/api/about").status == 200


def test_every_response_has_security_headers(server):
    for path in ("/", "/app.js", "/api/about", "/nothing"):
        headers = request(server, path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert "Python" not in headers.get("Server", "")


def test_responses(server):
    assert request(server, "/api/about").json["rows"] == 80
    found = request(server, "/api/search?side=rows&part=PERSON%207").json
    assert found["matches"][0]["name"] == "person 7"
    at = found["matches"][0]["at"]
    assert request(server, f"/api/line?side=rows&at={at}").json["name"] == "person 7"
    assert len(request(server, f"/api/nearest?side=rows&at={at}").json["nearest"]) == 10
    assert request(server, f"/api/recommend?at={at}&by=cautious").json["cells"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/line?side=rows&at=80",
        "/api/line?side=columns&at=16",
        "/api/line?at=-1",
        "/api/line?at=x",
        "/api/line?at=1e3",
        "/api/line?at=" + "9" * 5000,
        "/api/line?at=%D9%A3",
        "/api/line?start=-5",
        "/api/recommend?side=columns",
        "/api/line?side=__class__",
        "/api/line?order=up",
        "/api/line?shown=none",
        "/api/recommend?by=luck",
    ],
)
def test_invalid_parameters_are_rejected(server, path):
    reply = request(server, path)
    assert reply.status in (400, 404)
    assert "must be" in reply.json["error"] or "are for rows" in reply.json["error"]


def test_too_many_fields(server):
    assert request(server, "/api/about?" + "&".join("a=1" for _ in range(50))).status == 404


def test_hostile_names_are_json_without_a_tag(hostile_server):
    for path in (
        "/api/search?side=rows",
        "/api/line?side=rows&at=0",
        "/api/line?side=columns&at=0",
    ):
        reply = request(hostile_server, path)
        assert reply.headers["Content-Type"] == "application/json"
        assert b"<" not in reply.body
    names = {m["name"] for m in request(hostile_server, "/api/search?side=rows").json["matches"]}
    assert set(HOSTILE) <= names


def test_a_file_is_filled_and_downloaded(server):
    about = post(server, CSV).json
    assert about["filled"] == 2
    table, intervals = about["files"]
    of = about["of"]
    reply = request(server, f"/api/filled?of={of}&file={table}")
    assert reply.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{table}"
    lines = reply.body.decode().splitlines()
    assert lines[0] == "who,apple,tea"
    assert lines[1].startswith("Zoe,4.1,")
    assert lines[2].endswith(",2.5")
    lines = request(server, f"/api/filled?of={of}&file={intervals}").body.decode().splitlines()
    assert lines[0] == "row,column,value,lower,upper"
    assert len(lines) == 3
    assert request(server, f"/api/filled?of={of}&file={table}", headers={}).status == 403
    assert request(server, f"/api/filled?of={of}x&file={table}").status == 404


def test_only_the_last_files_are_kept(server):
    numbers = [post(server, CSV).json["of"] for _ in range(4)]
    status = [request(server, f"/api/filled?of={n}&file=new-filled.csv").status for n in numbers]
    assert status == [404, 200, 200, 200]


def test_names_of_files_cannot_add_headers(server):
    name = 'x"\r\nSet-Cookie: a=b\r\n.csv'
    about = post(server, CSV, name=name).json
    path = f"/api/filled?of={about['of']}&file={quote(about['files'][0])}"
    reply = request(server, path)
    assert reply.status == 200
    assert "Set-Cookie" not in reply.headers
    assert "%0D%0A" in reply.headers["Content-Disposition"]


def test_wrong_files_get_a_message(server):
    reply = post(server, b"who,apple,cola\nZoe,1,\n")
    assert reply.status == 422
    assert "'cola'" in reply.json["error"]
    assert post(server, b"").status == 422


def test_large_files_are_refused_before_they_are_read(server):
    for length in (str(MOST_BYTES + 1), "9" * 30):
        reply = post(server, None, **{"Content-Length": length})
        assert reply.status == 413
        assert "50 MB" in reply.json["error"]
        assert reply.headers["Connection"] == "close"
    for length in ("-1", "x", "1 000", "٣"):
        assert post(server, None, **{"Content-Length": quote(length, safe="- ")}).status == 411
    assert post(server, iter([CSV]), **{"Transfer-Encoding": "chunked"}).status == 411


@pytest.mark.parametrize("field", ["Content-Length", "content-length"])
def test_an_unread_body_is_not_parsed_as_a_request(server, field):
    head = f"Host: 127.0.0.1:{server.server_port}\r\nCookie: {server.cookie}={server.token}\r\n"
    inner = f"GET /api/about HTTP/1.1\r\n{head}\r\n"
    outer = f"GET / HTTP/1.1\r\n{head}{field}: {len(inner)}\r\n\r\n{inner}"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(outer.encode())
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").read()
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_upload_that_ends_early_is_reported(server, capsys):
    head = (
        f"POST /api/fill?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
        f"Cookie: {server.cookie}={server.token}\r\n"
        f"Origin: http://127.0.0.1:{server.server_port}\r\nContent-Length: 100\r\n\r\nwho,"
    )
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.makefile("rb").read() == b""
    assert request(server, "/api/about").status == 200
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("sent", [b"", b"who,"])
def test_an_upload_that_does_not_arrive_times_out(server, sent, monkeypatch, capsys):
    monkeypatch.setattr(Handler, "upload_seconds", 0.2)
    head = (
        f"POST /api/fill?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
        f"Cookie: {server.cookie}={server.token}\r\n"
        f"Origin: http://127.0.0.1:{server.server_port}\r\nContent-Length: 100\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=50) as connection:
        connection.sendall(head.encode() + sent)
        answer = connection.makefile("rb").read()
    assert answer.split()[1] == b"408"
    assert b"did not arrive completely within 0.2 seconds" in answer
    assert request(server, "/api/about").status == 200
    assert capsys.readouterr().err == ""


def test_a_slow_upload_times_out(server, monkeypatch, capsys):
    now = iter(range(0, 1000, 25))  # every look at the clock is 25 seconds later
    clock = SimpleNamespace(monotonic=lambda: float(next(now)))
    monkeypatch.setattr(requests, "time", clock)
    monkeypatch.setattr(requests, "_UPLOAD_CHUNK", 1)
    reply = post(server, CSV)
    assert reply.status == 408
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "content",
    [
        b",",
        b",,,\n,,,\n",
        b'"",""\n"",""\n',
        b"\xed\xa0\x80,tea\nZoe,1\n",
        b"who,apple,tea\n" + b"9" * 4301 + b",1,\n",
        b"who,apple,tea\n1,1e400,\n2,,3\n",
        b"who,apple,tea\n1,3+2j,\n2,,3\n",
        b"\x1f\x8b\x08\x00" + bytes(50),
        b"PK\x03\x04" + bytes(50),
    ],
)
def test_unusual_files_cause_no_server_error(server, content, capsys):
    assert post(server, content).status in (200, 422)
    assert capsys.readouterr().err == ""


def test_a_connection_serves_many_requests(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    for at in range(5):
        connection.request("GET", f"/api/line?at={at}", headers=own(server))
        sock = connection.sock
        assert connection.getresponse().read()
        assert connection.sock is sock
    connection.close()


def test_concurrent_requests_get_their_own_responses(server):
    def name(at):
        return request(server, f"/api/line?side=rows&at={at}").json["name"]

    alone = [name(at) for at in range(24)]
    barrier = threading.Barrier(8)

    def together(at):
        if at < 8:
            barrier.wait(timeout=60)
        if at % 6 == 0:
            assert post(server, CSV).status == 200
        assert request(server, f"/api/nearest?side=rows&at={at}").status == 200
        return name(at)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(together, range(24))) == alone


def test_a_bug_is_shown_in_the_terminal_and_does_not_end_the_server(server, capsys, monkeypatch):
    monkeypatch.setattr(ModelView, "about", lambda self: 1 // 0)
    reply = request(server, "/api/about")
    assert reply.status == 500
    assert "terminal" in reply.json["error"]
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert request(server, "/api/search").status == 200


def test_used_and_invalid_ports(server):
    for port in (server.server_port, 70_000):
        with pytest.raises(InputError, match=f"port {port} cannot be used"):
            Explorer(server.view, port)


def test_every_server_has_its_own_token(server):
    with served(survey()) as other:
        assert other.token != server.token
        assert len(other.token) > 40
        assert (
            request(other, "/", headers={"Cookie": f"{other.cookie}={server.token}"}).status == 403
        )
