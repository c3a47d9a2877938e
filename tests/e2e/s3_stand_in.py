"""The part of an S3-style store that KV blocks use. It checks every signature. Tests can make it return wrong data or
hang."""

import contextlib
import hashlib
import hmac
import http.server
import threading
import time

KEYS = dict(AWS_ACCESS_KEY_ID="who", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="eu-1")


class Store:
    def __init__(self):
        self.values, self.lock, self.mood, self.refused = {}, threading.Lock(), "good", 0


def signature(method, path, headers, body):
    """Computes the signature from AWS's documentation, independently of Octavo's code."""
    scheme, _, fields = headers.get("Authorization", "").partition(" ")
    given = dict(field.strip().split("=", 1) for field in fields.split(",") if "=" in field)
    if scheme != "AWS4-HMAC-SHA256" or headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        return False
    who, *scope = given["Credential"].split("/")
    names = given["SignedHeaders"].split(";")
    canonical = [method, path, "", *(f"{name}:{headers[name].strip()}" for name in names), "", given["SignedHeaders"], headers["x-amz-content-sha256"]]
    to_sign = ["AWS4-HMAC-SHA256", headers["x-amz-date"], "/".join(scope), hashlib.sha256("\n".join(canonical).encode()).hexdigest()]
    key = ("AWS4" + KEYS["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in [*scope, "\n".join(to_sign)]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    good = {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names) and scope[1:] == [KEYS["AWS_REGION"], "s3", "aws4_request"]
    return good and who == KEYS["AWS_ACCESS_KEY_ID"] and key.hex() == given["Signature"]


@contextlib.contextmanager
def s3_stand_in():
    """Yields (URL, Store). Requests must be signed with KEYS."""
    store = Store()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_):
            pass

        def reply(self, status, body=b""):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if store.mood == "hanging":
                time.sleep(30)
            if not signature(self.command, self.path, self.headers, body):
                store.refused += 1
                return self.reply(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            with store.lock:
                if self.command == "PUT":
                    store.values[self.path] = body
                    return self.reply(200)
                if self.command == "DELETE":
                    store.values.pop(self.path, None)
                    return self.reply(204)
                value = store.values.get(self.path)
            if value is None:
                return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
            self.reply(200, value[:-1] + bytes([value[-1] ^ 1]) if store.mood == "lying" else value)

        do_GET = do_HEAD = do_PUT = do_DELETE = answer

        def handle(self):
            with contextlib.suppress(ConnectionError):  # the client has disconnected
                super().handle()

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/bucket/kv", store
        finally:
            server.shutdown()
            thread.join()
