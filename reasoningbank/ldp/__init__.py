"""A small Linked Data server: documents to read and write over HTTP, and SPARQL over all of them.

`LDPServer` serves `Documents` on loopback; they live in memory, in a folder of Turtle files or in
an Oxigraph store.
"""

from reasoningbank.ldp.documents import Document, Documents
from reasoningbank.ldp.server import LDPServer

__all__ = ["Document", "Documents", "LDPServer"]
