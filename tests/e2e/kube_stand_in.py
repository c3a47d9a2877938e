"""The part of a Kubernetes API server that Octavo uses: lists, watches and leases."""

import contextlib
import http.server
import json
import queue
import threading
import urllib.parse

from conftest import free_port


class Cluster:
    """Collections by path, each with its objects by name. Every change has a version and is sent to the watches. A watch also gets
    the changes after the version that it names."""

    def __init__(self):
        self.lock = threading.Lock()
        self.version = 100
        self.collections = {}
        self.watches = []  # (collection, queue)
        self.history = []  # (version, collection, event)
        self.oldest = 0  # watches from an earlier version get a 410
        self.requests = []

    def put(self, collection, obj):
        with self.lock:
            objects = self.collections.setdefault(collection, {})
            kind = "MODIFIED" if obj["metadata"]["name"] in objects else "ADDED"
            self.version += 1
            obj = json.loads(json.dumps(obj))
            obj["metadata"]["resourceVersion"] = str(self.version)
            objects[obj["metadata"]["name"]] = obj
            self.tell(collection, kind, obj)
            return obj

    def delete(self, collection, name):
        with self.lock:
            self.version += 1
            obj = self.collections[collection].pop(name)
            self.tell(collection, "DELETED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}})

    def tell(self, collection, kind, obj):
        event = {"type": kind, "object": obj}
        self.history.append((self.version, collection, event))
        for watched, events in self.watches:
            if watched == collection:
                events.put(event)

    def bookmark(self, collection):
        with self.lock:
            self.tell(collection, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def expire(self, collection, change):
        """Runs change() without an event. The history is lost, and all watches end."""
        with self.lock:
            watches, self.watches = self.watches, [watch for watch in self.watches if watch[0] != collection]
        change()
        with self.lock:
            self.oldest = self.version
            self.history.clear()
        for watched, events in watches:
            if watched == collection:
                events.put({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}})

    def asked(self, method, path, query=""):
        return sum(m == method and p == path and query in q for m, p, q in self.requests)


def pod(name, ip, labels, ready=True):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": name, "labels": labels}, "status": {"phase": "Running", "podIP": ip, "conditions": conditions}}


@contextlib.contextmanager
def kubernetes():
    """Yields a cluster and its server's URL."""
    cluster = Cluster()
    done = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, body):
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def refuse(self, status):
            self.answer(status, {"kind": "Status", "code": status})

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query))
            with cluster.lock:
                cluster.requests.append(("GET", url.path, url.query))
            if "/leases/" in url.path:
                collection, name = url.path.rsplit("/", 1)
                found = cluster.collections.get(collection, {}).get(name)
                return self.answer(200, found) if found else self.refuse(404)
            if "watch" in query:
                return self.watch(url.path, int(query["resourceVersion"]))
            with cluster.lock:
                wanted = [part.split("=") for part in query.get("labelSelector", "").split(",") if part]
                everything = [
                    each
                    for name, each in sorted(cluster.collections.get(url.path, {}).items())
                    if query.get("fieldSelector", f"metadata.name={name}") == f"metadata.name={name}"
                    and all(each["metadata"]["labels"].get(key) == value for key, value in wanted)
                ]
                begin = int(query.get("continue", 0))
                end = begin + min(int(query["limit"]), 2)  # a small number, so that lists have several pages
                metadata = {"resourceVersion": str(cluster.version)}
                if end < len(everything):
                    metadata["continue"] = str(end)
                body = {"metadata": metadata, "items": everything[begin:end]}
            self.answer(200, body)

        def watch(self, path, version):
            events = queue.Queue()
            with cluster.lock:
                if version < cluster.oldest:
                    return self.refuse(410)
                for number, collection, event in cluster.history:
                    if collection == path and number > version:
                        events.put(event)
                cluster.watches.append((path, events))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True  # after a watch, the client must send a new request
            with contextlib.suppress(OSError):
                while not done.is_set():
                    with contextlib.suppress(queue.Empty):
                        line = json.dumps(events.get(timeout=0.1)).encode() + b"\n"
                        half = len(line) // 2  # lines arrive in pieces
                        for part in (line[:half], line[half:]):
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                            self.wfile.flush()

        def write(self, created):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = urllib.parse.urlsplit(self.path).path
            collection = path if created else path.rsplit("/", 1)[0]
            known = cluster.collections.get(collection, {}).get(body["metadata"]["name"])
            seen = body["metadata"].get("resourceVersion")
            if (known is not None) if created else (known is None or known["metadata"]["resourceVersion"] != seen):
                return self.refuse(409)
            self.answer(201 if created else 200, cluster.put(collection, body))

        def do_POST(self):
            self.write(True)

        def do_PUT(self):
            self.write(False)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield cluster, f"http://127.0.0.1:{server.server_port}"
    finally:
        done.set()
        server.shutdown()
        thread.join()
        server.server_close()
