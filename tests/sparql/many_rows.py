"""A server of as many rows as one likes, and a process that puts them behind a handle.

`python -m tests.sparql.many_rows URL ROWS MAX_BYTES` prints what the process saw, in JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from reasoningbank import EndpointConfig, SPARQLTools
from reasoningbank.sparql import TableResult
from reasoningbank.sparql.formats import read_tsv
from reasoningbank.spill import Spool

PER_BLOCK = 10_000
ROW = '<http://e/{n:08}>\t"row {n:08}"\n'


class ManyRows:
    """Serves so many numbered rows to every request, made while they are sent."""

    def __init__(self, rows: int) -> None:
        first = "".join(ROW.format(n=n) for n in range(PER_BLOCK)).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response_only(200)
                self.send_header("Content-Type", "text/tab-separated-values")
                self.end_headers()
                self.close_connection = True
                self.wfile.write(b"?item\t?label\n")
                for start in range(0, rows, PER_BLOCK):
                    mark = f"{start:08}"[:4].encode()
                    numbered = first.replace(b"/0000", b"/" + mark).replace(b" 0000", b" " + mark)
                    try:
                        self.wfile.write(numbered)
                    except (BrokenPipeError, ConnectionResetError):
                        return

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/sparql"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> ManyRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def peak_bytes() -> int:
    """Return the most memory this process has held; Linux only."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def handle(url: str, rows: int, max_bytes: int) -> dict[str, Any]:
    """Put the rows behind a handle and look at a few of them."""
    config = EndpointConfig(url, "many", max_rows=rows, max_bytes=max_bytes, timeout_s=120)
    tools = SPARQLTools(config)
    before = peak_bytes()
    ref = tools.sparql_query("SELECT ?item ?label { ?item a ?label }", rows)
    at = ref.rows - 7
    seen = {
        "rows": ref.rows,
        "chars": ref.sz,
        "truncated": tools.sparql_stats(ref)["truncated"],
        "first": tools.sparql_peek(ref, 1)[0]["label"],
        "late": tools.sparql_slice(ref, at, at + 1)[0]["label"],
        "at": at,
        "resident": tools.store.resident_bytes,
        "spilled": tools.store.spilled_bytes,
        "peak": peak_bytes() - before,
    }
    tools.close()
    return seen


def parsed_tsv(body: bytes, *, cut: bool = False, max_rows: int = 99) -> TableResult:
    """Read SPARQL TSV from memory."""
    spool = Spool(max_rows + 1)
    cut = spool.feed(body) or cut
    return read_tsv(spool, cut=cut, max_rows=max_rows)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(handle(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
