"""The blueprint of the pages: scopes, rendering, security headers, and problems shown as pages."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import flask
from flask import Response, g, redirect, render_template, request, url_for

from service.api.auth import check_route
from service.api.context import current_service, request_id
from service.api.problems import Problem, log_problem, problem_for
from service.api.responses import STYLE_HASH
from service.database.tables import Scope
from service.errors import NotFound, ServiceError, Unauthenticated, ValidationFailed
from service.schemas.fields import PageQuery, load_members
from service.web import session
from service.web.filters import FILTERS

View = Callable[..., Response]

POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{STYLE_HASH}'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # without a referrer a form is sent with the origin "null"
}
MAX_FORM_MB = 16  # of each field of a multipart form that is not a file
MAX_UPLOAD_FIELDS = 20  # of a form with a file
UPLOADS = "pages.upload"


class Pages(flask.Blueprint):
    """Views with their scopes. A caller needs one of a view's scopes; a view without scopes is open to everybody."""

    def __init__(self) -> None:
        super().__init__("pages", __name__, template_folder="templates", url_prefix="/ui")
        self.scopes: dict[str, tuple[Scope, ...]] = {}

    def page(self, rule: str, *scopes: Scope, methods: tuple[str, ...] = ("GET",)) -> Callable[[View], View]:
        """Register a view; the name of its function is its endpoint."""

        def decorate(view: View) -> View:
            self.scopes[f"{self.name}.{view.__name__}"] = scopes
            self.add_url_rule(rule, view_func=view, methods=methods)
            return view

        return decorate


pages = Pages()
for name, function in FILTERS.items():
    pages.add_app_template_filter(function, name)


def cursor() -> str | None:
    """Return the cursor in the query, if there is one; raise `ValidationFailed` if it is malformed."""
    given = {"cursor": request.args["cursor"]} if "cursor" in request.args else {}
    members, faults = load_members(PageQuery(), given)
    ValidationFailed.raise_for(faults)
    found: str | None = members["cursor"]
    return found


def render(template: str, *, problem: Problem | None = None, **values: Any) -> Response:
    """Return a page, with the status of the problem that it shows, or 200."""
    html = render_template(template, problem=problem, **values)
    return Response(html, status=200 if problem is None else problem.status, mimetype="text/html")


def see_other(endpoint: str, **values: Any) -> Response:
    """Redirect (303) to a page after a successful change; if the caller may not open it, redirect to the first page."""
    address = url_for(f"pages.{endpoint}", **values) if may_open(endpoint) else url_for("pages.home")
    return Response(status=303, headers={"Location": address})


@pages.before_request
def begin() -> Response | None:
    """Identify the caller, check its scope and model, and refuse a change that comes from another site.

    A page that another site links to is opened twice: see `is_followed_from_another_site`.
    """
    if session.is_followed_from_another_site():
        # The browser opens the page again, now from this site; the link is for a browser that does not.
        return Response('<a href="">Open the page</a>', headers={"Refresh": "0"}, content_type="text/html")
    request.max_form_memory_size = MAX_FORM_MB * 2**20
    if request.endpoint == UPLOADS:
        request.max_form_parts, request.max_form_memory_size = MAX_UPLOAD_FIELDS, 2**20
        request.max_content_length = current_service().settings.max_upload_mb * 2**20
    session.begin_session()
    needed = pages.scopes[request.endpoint or ""]
    if needed:
        g.caller = session.caller_of_session()
        check_route(request, g.caller, needed)
    else:
        with suppress(ServiceError):  # the caller is only needed for the links at the top
            g.caller = session.caller_of_session()
    session.check_same_origin()
    return None


@pages.after_request
def finish(response: Response) -> Response:
    """Add the headers of a page, and the cookie of a new session."""
    for header, value in HEADERS.items():
        response.headers.setdefault(header, value)
    session.write_cookie(response)
    return response


@pages.errorhandler(Exception)
def error_page(error: Exception) -> Response:
    """Show a problem as a page or, for htmx, as a part of a page; if a page needs a login, redirect to the login."""
    headers = request.headers
    is_part = headers.get("HX-Request") == "true" and headers.get("HX-History-Restore-Request") != "true"  # Back
    if isinstance(error, Unauthenticated) and not is_part:
        back = request.full_path.rstrip("?") if request.method == "GET" else None
        return redirect(url_for("pages.log_in_page", back=back), 303)  # type: ignore[return-value] # werkzeug's Response
    problem = problem_for(error)
    log_problem(error, problem)
    return render("_problem.html" if is_part else "problem.html", problem=problem, request_id=request_id())


@pages.app_context_processor
def shared_values() -> dict[str, Any]:
    """Return the values that every template may use."""
    keys_are_on = current_service().settings.auth == "keys"
    return {
        "can": can,
        "csrf": _token,
        "keys_are_on": keys_are_on,
        "is_logged_in": keys_are_on and "caller" in g,
        "is_limited": "caller" in g and g.caller.models is not None,  # to some models
    }


def can(scope: str) -> bool:
    """Return whether the caller has a scope; the scope admin includes all others."""
    return "caller" in g and not g.caller.scopes.isdisjoint({Scope(scope), Scope.ADMIN})


def may_open(endpoint: str) -> bool:
    """Return whether the caller has one of the scopes of a page, or the page needs no scope."""
    needed = pages.scopes[f"pages.{endpoint}"]
    return not needed or any(map(can, needed))


def problem_of(error: Exception, endpoint: str | None = None) -> Problem:
    """Return the problem to show on the page `endpoint` (None: the requested page).

    Raise the error again if it is unexpected (status 500 or more), or if the caller may not open that page.
    """
    problem = problem_for(error)
    if problem.status >= 500 or (endpoint is not None and not may_open(endpoint)):
        raise error
    return problem


@pages.page("/<path:rest>", methods=("GET", "POST"))
def nothing_here(rest: str) -> Response:
    """Raise `NotFound` for addresses without a page."""
    raise NotFound("page", f"/ui/{rest}")


def _token() -> str:
    return g.browser.token if "browser" in g else ""
