"""The page about this installation: the version, and the settings in force."""

import platform

from flask import Response, current_app

from service.api.context import current_service
from service.database.tables import Scope
from service.settings import as_text, variables
from service.usecases.doctor import examine_with
from service.web.home import ANY_SCOPE
from service.web.pages import can, pages, render


@pages.page("/about", *ANY_SCOPE)
def about() -> Response:
    """Show the version, and to administrators the settings in force."""
    settings = current_service().settings
    shown = [(one, "(not shown)" if one.rule.secret else as_text(getattr(settings, one.field))) for one in variables()]
    return render(
        "about.html",
        version=current_app.config["API_VERSION"],
        python=platform.python_version(),
        settings=shown if can(Scope.ADMIN) else [],
    )


@pages.page("/about/checks", Scope.ADMIN)
def checks() -> Response:
    """Show what `espalier doctor` finds, as a part of the page."""
    return render("_checks.html", findings=examine_with(current_service().settings))
