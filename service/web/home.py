"""The first page, and logging in and out."""

from typing import Any

from flask import Response, request

from service.api.context import current_caller, current_service
from service.database.engine import read_session
from service.database.tables import DataSet, Scope
from service.errors import Unauthenticated
from service.repositories import aliases, decisions, job_queue, models
from service.repositories.datasets import WITHOUT_DECLARATION
from service.repositories.pagination import page
from service.web import session
from service.web.pages import can, cursor, pages, problem_of, render, see_other

SHOWN = 8  # items of each list on the first page
MAX_MODELS = 50
ANY_SCOPE = tuple(Scope)


@pages.page("/", *ANY_SCOPE)
def home() -> Response:
    """Show models with their aliases, and the newest jobs, data sets and decisions."""
    service, caller = current_service(), current_caller()
    lists: dict[str, Any] = {}
    with read_session(service.sessions) as opened:
        if can(Scope.READ):
            listed = models.list_models(opened, names=caller.models, limit=MAX_MODELS, cursor=cursor())
            newest = {model.name: models.list_versions(opened, model.name, limit=1).items for model in listed.items}
            in_force = {name: aliases.list_current(opened, name, limit=SHOWN) for name in newest}
            newest_answers = {name for name in in_force if aliases.version_id(opened, name, aliases.DEFAULT) is None}
            jobs = job_queue.list_jobs(opened, models=caller.models, key_id=caller.key_id, limit=SHOWN).items
            lists = {"models": listed, "in_force": in_force, "newest": newest, "newest_answers": newest_answers}
            lists["jobs"] = jobs
            lists["data_sets"] = page(opened, DataSet, options=WITHOUT_DECLARATION, limit=SHOWN).items
        if can(Scope.AUDIT):
            wanted = decisions.Filter(models=caller.models)
            lists["decisions"] = decisions.list_decisions(opened, wanted, limit=SHOWN).items
    return render("home.html", **lists)


@pages.page("/login", methods=("GET",))
def log_in_page() -> Response:
    """Show the form to log in with a key."""
    return render("login.html", back=request.args.get("back", ""))


@pages.page("/login", methods=("POST",))
def log_in() -> Response:
    """Log in with a key, and go on to the page that was requested."""
    back = request.form.get("back", "")
    try:
        session.log_in(request.form.get("key", ""))
    except Unauthenticated as error:
        return render("login.html", back=back, problem=problem_of(error))
    if back.startswith("/ui/") and "\\" not in back and back.isprintable():  # only to a page of this service
        return Response(status=303, headers={"Location": f"{request.root_path}{back}"})
    return see_other("home")


@pages.page("/logout", methods=("POST",))
def log_out() -> Response:
    """Log out."""
    session.log_out()
    return see_other("log_in_page")
