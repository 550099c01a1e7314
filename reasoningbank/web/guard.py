"""Who may use the page: this machine's own pages, or those who know the token."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reasoningbank.errors import UsageError, invalid_data
from reasoningbank.sparql import is_loopback

#: Bytes of a request's body.
MAX_BODY = 1_000_000
COOKIE = "reasoningbank-token"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Sent with every answer; the report brings a policy of its own.
_HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
            "cache-control": "no-store", "content-security-policy": _POLICY}  # fmt: skip

_Body = TypeVar("_Body", bound=BaseModel)


class Guard:
    """Lets through requests of this machine's pages, or those that bring the token.

    Without a token a request must name a loopback host (against DNS rebinding); its origin, if it
    has one, must be the same host, so that no page of another site asks with the reader's browser.
    """

    def __init__(self, app: ASGIApp, token: str = "") -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(Request(scope)) if scope["type"] == "http" else None

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message["headers"] += [one for one in more if one[0] not in given]
            await send(message)

        await (refused or self._app)(scope, receive, send_guarded)

    def _refused(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin", "")
        if origin and origin.partition("//")[2] != host:
            return PlainTextResponse("another site's page may not ask here\n", 403)
        if not self._token:
            mine = is_loopback(f"//{host}")
            line = "open the page as http://127.0.0.1:PORT\n"
            return None if mine else PlainTextResponse(line, 421)
        given = request.query_params.get("token", "")
        if request.method == "GET" and self._is_token(given):
            moved = RedirectResponse("/" + request.url.path.lstrip("/"), 303)
            moved.set_cookie(COOKIE, given, httponly=True, samesite="strict", max_age=30 * 86_400)
            return moved
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if self._is_token(bearer) or self._is_token(request.cookies.get(COOKIE, "")):
            return None
        if request.url.path.startswith("/v1/"):
            said = {"message": "give the token as the API key", "type": "error", "code": "token"}
            return JSONResponse({"error": said}, 401)
        return PlainTextResponse("open the page with ?token=TOKEN\n", 401)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


async def body_of(request: Request, kind: type[_Body]) -> _Body:
    """Return the body of a request, which must be JSON of a kind."""
    # A form of another site's page can send no such type without asking the server first.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise UsageError("not JSON", hint="send application/json", code="not-json")
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MAX_BODY:
            raise UsageError(f"more than {MAX_BODY:,} bytes", hint="send less", code="too-large")
    return valid(kind.model_validate_json, raw)


def valid(parse: Callable[[Any], _Body], data: Any) -> _Body:
    try:
        return parse(data)
    except ValidationError as error:
        raise invalid_data(error, code="bad-request") from None
