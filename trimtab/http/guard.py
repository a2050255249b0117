"""Who is let in: the host a request names, the origin it comes from, the token it carries.

Pure functions of a request's head, called by `trimtab.http.app`. The host check keeps a web page that had its own name lead to this
machine (DNS rebinding) from reading; the origin check and the token keep it from changing anything. There are no cookies.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping

from trimtab.http.endpoints import Access as Needs
from trimtab.http.problem import Problem
from trimtab.http.settings import NO_TOKEN, TOKEN_FILE, Access

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def check_host(host: str, allowed: Access) -> None:
    """Refuse a request for a name that is not ours; addresses are no names, so no DNS can turn them.

    Raises
    ------
    Problem
        421.
    """
    name = _name(host)
    if name not in allowed.names and not _is_address(name):
        raise Problem(
            421,
            f"This is not {name or 'a host without a name'}.",
            "Reach it as localhost or by its IP address, or add the name to names under http in the service's configuration.",
        )


def check_origin(host: str, headers: Mapping[str, str], allowed: Access) -> None:
    """Refuse a change that another site's page asks for.

    Raises
    ------
    Problem
        403.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    foreign = site is not None and site not in ("same-origin", "none")
    if origin is not None:
        where = origin.partition("://")[2]
        foreign = foreign or not (where == host or _name(where) in allowed.names - {"localhost"})
    if foreign:
        raise Problem(
            403,
            f"Pages of {origin or 'another site'} may not change anything here.",
            "Use the service's own page.",
        )


def check_token(header: str | None, needs: Needs, allowed: Access) -> None:
    """Refuse a request without a token where it needs one; compared in constant time.

    Raises
    ------
    Problem
        401, or 403 where no token is configured, so that nothing can be changed, and where the token only reads.
    """
    if needs == "anyone" or (needs == "reading" and not allowed.read_token):
        return
    scheme, _, given = (header or "").partition(" ")
    reads = allowed.reader is not None and scheme.lower() == "bearer" and _same(given.strip(), allowed.reader)
    if needs == "reading" and reads:
        return
    if allowed.token is None and needs == "changing":
        raise Problem(403, NO_TOKEN, TOKEN_FILE)
    if reads:
        raise Problem(403, "This token allows reading only.", "Use the token of token_file.")
    if scheme.lower() != "bearer" or allowed.token is None or not _same(given.strip(), allowed.token):
        what = "Changing anything" if needs == "changing" else "Reading"
        found = "none was sent" if not header else "another one was sent"
        raise Problem(
            401,
            f"{what} here takes the token, and {found}.",
            "Send Authorization: Bearer TOKEN.",
            {"WWW-Authenticate": 'Bearer realm="trimtab"'},
        )


def _same(given: str, token: str) -> bool:
    """Digests are compared, so the time tells neither signs nor length."""
    return hmac.compare_digest(
        hashlib.sha256(given.encode()).digest(), hashlib.sha256(token.encode()).digest()
    )


def _name(host: str) -> str:
    """The host without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0].lower().rstrip(".") if ":" in host else host.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
