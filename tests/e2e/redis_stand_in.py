"""The part of a Redis server that a store of KV blocks uses. Tests can make it return wrong data or hang."""

import contextlib
import socketserver
import threading


class Store:
    def __init__(self):
        self.values, self.lock, self.mood = {}, threading.Lock(), "good"

    def answer(self, name, *arguments):
        with self.lock:
            if name == b"EXISTS":
                return b":%d\r\n" % (arguments[0] in self.values)
            if name == b"GET":
                value = self.values.get(arguments[0])
                if value is not None and self.mood == "lying":
                    value = value[:-1] + bytes([value[-1] ^ 1])
                return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)
            if name == b"SET":
                self.values[arguments[0]] = arguments[1]
                return b"+OK\r\n"
            if name == b"DEL":
                return b":%d\r\n" % sum(self.values.pop(key, None) is not None for key in arguments)
            return b"-ERR unknown command\r\n"


@contextlib.contextmanager
def redis_stand_in():
    """Yields (URL, Store)."""
    store = Store()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            with contextlib.suppress(ConnectionError):  # the client has disconnected
                self.answer()

        def answer(self):
            while head := self.rfile.readline():
                parts = []
                for _ in range(int(head[1:])):
                    parts.append(self.rfile.read(int(self.rfile.readline()[1:])))
                    self.rfile.readline()
                if store.mood == "hanging":
                    continue
                self.wfile.write(store.answer(*parts))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}", store
        finally:
            server.shutdown()
            thread.join()
