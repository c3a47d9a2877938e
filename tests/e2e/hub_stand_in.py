"""A hub on loopback: the parts of huggingface.co's interface that downloads use, with faults on demand.

Large files are on a second server, which must never receive a token.
"""

import contextlib
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

LARGE = 100_000  # minimum size in bytes of a file on the second server


class Repository:
    def __init__(self, files, commit="1" * 40, token=None):
        self.files = files  # name: bytes
        self.commit = commit
        self.token = token  # requests without this token are rejected


class Hub:
    """A hub with `repositories` by name. `faults` are called before each answer: fault(handler, where, file) returns
    True if it has answered. `seen` contains (where, method, path, headers) of all requests."""

    def __init__(self, repositories):
        self.repositories = repositories
        self.faults = []
        self.seen = []

    def requests(self, where, method="GET"):
        return [path for at, how, path, _ in self.seen if (at, how) == (where, method)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", length=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def send_file(self, content, **headers):
        """Sends the whole file, or the range that the client requests."""
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not wanted:
            return self.answer(200, content, **headers)
        begin = int(wanted[1])
        self.answer(206, content[begin:], Content_Range=f"bytes {begin}-{len(content) - 1}/{len(content)}", **headers)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        with contextlib.suppress(ConnectionError):  # the client has closed the connection
            self.handle_request()

    def handle_request(self):
        hub, where = self.server.hub, self.server.where
        hub.seen.append((where, self.command, self.path, dict(self.headers)))
        file = unquote(self.path).rsplit("/", 1)[-1]
        if any(fault(self, where, file) for fault in hub.faults):
            return
        if where == "elsewhere":
            name, file = unquote(self.path[1:]).split("//")
            return self.send_file(hub.repositories[name].files[file])
        path = unquote(self.path).split("?")[0]
        if found := re.fullmatch(r"/api/models/(.+)/revision/(.+)", path):
            return self.list(*found.groups())
        if found := re.fullmatch(r"/api/models/(.+)/tree/(.+)", path):
            return self.tree(*found.groups())
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self.resolve(*found.groups())
        self.answer(404)

    def repository(self, name, revision):
        repository = self.server.hub.repositories.get(name)
        if repository is None:
            return self.answer(401, X_Error_Code="RepoNotFound", X_Error_Message="Invalid username or password.")
        if repository.token and self.headers.get("Authorization") != f"Bearer {repository.token}":
            return self.answer(401 if "Authorization" not in self.headers else 403, X_Error_Code="GatedRepo",
                               X_Error_Message="Access to this model is restricted.")
        if revision not in ("main", "v1", "refs/pr/1", repository.commit):
            return self.answer(404, X_Error_Code="RevisionNotFound")
        return repository

    def list(self, name, revision):
        if repository := self.repository(name, revision):
            body = {"id": name, "sha": repository.commit,
                    "siblings": [{"rfilename": file} for file in repository.files]}
            self.answer(200, json.dumps(body).encode(), Content_Type="application/json")

    def tree(self, name, revision):
        """Sends the second list of files, which only the Python client requests."""
        if repository := self.repository(name, revision):
            body = [{"type": "file", "path": file, "size": len(content), "oid": "0" * 40}
                    for file, content in repository.files.items()]
            self.answer(200, json.dumps(body).encode(), Content_Type="application/json")

    def resolve(self, name, revision, file):
        repository = self.repository(name, revision)
        if repository is None:
            return
        if file not in repository.files:
            return self.answer(404, X_Error_Code="EntryNotFound")
        content = repository.files[file]
        if len(content) < LARGE:
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            return self.send_file(content, ETag=f'"{blob}"', X_Repo_Commit=repository.commit)
        elsewhere = f"http://127.0.0.1:{self.server.hub.elsewhere}/{name}//{file}"
        self.answer(302, Location=elsewhere, X_Repo_Commit=repository.commit, X_Linked_Size=str(len(content)),
                    X_Linked_ETag=f'"{hashlib.sha256(content).hexdigest()}"')


@contextlib.contextmanager
def running(repositories, tls=None):
    """Runs a Hub, and yields it with the URL of its `endpoint`. tls: an ssl.SSLContext."""
    hub = Hub(repositories)
    servers = []
    for where in ("hub", "elsewhere"):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.hub, server.where = hub, where
        if tls and where == "hub":
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
    hub.endpoint = f"{'https' if tls else 'http'}://localhost:{servers[0].server_port}"
    hub.elsewhere = servers[1].server_port
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
