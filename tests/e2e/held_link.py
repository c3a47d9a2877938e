"""A link to a server that stops each event stream in its middle, so that a test can kill the server at that moment."""

import socket
import threading

from conftest import free_port


class HeldLink:
    """Forwards connections to a port. Forwards `passed` bytes of an event stream and holds back the rest; `held` counts these
    streams. close() ends all connections; later ones are refused."""

    def __init__(self, port, passed=1000):
        self.port, self.passed, self.held = port, passed, 0
        self.done, self.sockets, self.lock = threading.Event(), [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.done.set()
        with self.lock:
            for end in (self.listener, *self.sockets):
                shut(end)

    def accept(self):
        while not self.done.is_set():
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                return
            with self.lock:
                self.sockets += [client, server]
            threading.Thread(target=self.forward, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.forward, args=(server, client, True), daemon=True).start()

    def forward(self, source, sink, answers):
        streamed = None  # bytes of an event stream
        try:
            while data := source.recv(512):
                if answers and b"text/event-stream" in data:
                    streamed = 0
                if streamed is not None:
                    streamed += len(data)
                    if streamed > self.passed:
                        with self.lock:
                            self.held += 1
                        self.done.wait()
                        return
                sink.sendall(data)
                if data.endswith(b"\r\n0\r\n\r\n"):  # the connection may be used again
                    streamed = None
        except OSError:
            pass
        shut(sink)


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
