"""A way to an endpoint that can be closed and opened again."""

from __future__ import annotations

import contextlib
import socket
import threading

__all__ = ["Proxy"]


class Proxy:
    """Passes bytes on to a server on loopback, while it is open.

    Args:
        port: Where the server listens.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener: socket.socket | None = None
        self._passing: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port = 0
        self.held = threading.Event()
        self.release = threading.Event()
        self.release.set()
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/query"

    def open(self) -> None:
        """Listen, at the same port as before."""
        if self._listener is not None:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def hold(self) -> None:
        """Let connections from now on wait until `release` is set."""
        self.held.clear()
        self.release.clear()

    def close(self) -> None:
        """Refuse new connections and end those that are."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone would not wake the thread that waits in accept.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            passing, self._passing = self._passing, set()
        for end in passing:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        if not self.release.is_set():
            self.held.set()
            self.release.wait(60)
        try:
            far = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            near.close()
            return
        with self._lock:
            self._passing |= {near, far}
        for ends in ((near, far), (far, near)):
            threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while chunk := source.recv(65_536):
                target.sendall(chunk)
        except OSError:
            pass
        finally:
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._passing -= {source, target}
            source.close()
