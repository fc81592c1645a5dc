"""The description of the API: the OpenAPI document, and the page that shows it without asking another host."""

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

__all__ = ["STATIC", "docs"]

STATIC = Path(__file__).resolve().parent.parent / "web" / "static"
PAGE = "docs.html"
# Scripts and styles only from our own files; Swagger UI sets styles by script, which needs no exception, and draws its
# icons from data URLs in its style sheet.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

docs = Blueprint("docs", __name__, static_folder=str(STATIC), static_url_path="/static")


@docs.get("/docs")
def page() -> Response:
    """Show the API as a page to read and to try."""
    response = send_from_directory(STATIC, PAGE)
    response.headers["Content-Security-Policy"] = POLICY
    return response
