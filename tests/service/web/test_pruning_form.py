"""The form for a pruning: its slider, its fields and the request as code describe the same tree."""

import html as escaping
import re
import shlex
from typing import Any

import orjson
import pytest

import espalier
from service.database.engine import read_session
from service.repositories import job_queue
from tests.factories import ROOT
from tests.service.web.browser import Browser, Structure

PRUNE = "/models/drug/versions/1/prune"
BY_PATH = {"method": "cost_complexity"}


@pytest.fixture
def path(visitor: Browser) -> espalier.PruningPath:
    """The path by error of version 1 of the model drug."""
    rows = (ROOT / "service/examples/drug200.csv").read_text()
    visitor.served.train("drug", rows, preset="cart", target="Drug")
    return espalier.pruning_path(espalier.train(espalier.dataset_from_csv(rows, target="Drug"), "cart"), "error")


def queued(visitor: Browser, **fields: str) -> dict[str, Any]:
    """Send the form; give the parameters of the job."""
    job = visitor.change(PRUNE, **fields)
    with read_session(visitor.served.service.sessions) as session:
        params: dict[str, Any] = job_queue.find_job(session, job.split("/")[2]).payload["params"]
    return params


def coded(html: str) -> dict[str, Any]:
    """Give the body of the request that a page shows as code."""
    shell = re.search(r"<code>(curl.*?)</code>", html, re.DOTALL)
    assert shell
    words = shlex.split(escaping.unescape(shell[1]))
    body: dict[str, Any] = orjson.loads(words[words.index("-d") + 1])
    return body


@pytest.mark.parametrize("step", [0, 1, 2])
def test_without_scripts_the_step_of_the_slider_applies(
    visitor: Browser, path: espalier.PruningPath, step: int
) -> None:
    fields = {**BY_PATH, "step": str(step), "params.alpha": "", "params.risk": ""}
    assert queued(visitor, **fields) == {"alpha": float(path.alpha[step]), "risk": "error"}


def test_an_alpha_that_is_typed_applies_instead_of_the_step(visitor: Browser, path: espalier.PruningPath) -> None:
    params = queued(visitor, **BY_PATH, **{"step": "2", "params.alpha": "3.5", "params.risk": ""})
    assert params == {"alpha": 3.5, "risk": "error"}


def test_the_step_is_not_used_with_another_risk_or_a_selected_alpha(
    visitor: Browser, path: espalier.PruningPath
) -> None:
    params = queued(visitor, **BY_PATH, **{"step": "2", "params.select": "cv"})
    assert params == {"select": "cv", "risk": "error"}
    html = visitor.refused(PRUNE, **BY_PATH, **{"step": "2", "params.risk": "impurity"})
    assert "either alpha or select must be given" in html


def test_the_method_of_the_path_that_is_chosen_again_has_the_risk_of_the_path(
    visitor: Browser, path: espalier.PruningPath
) -> None:
    other = visitor.send(f"{PRUNE}/form", {"method": "pessimistic"}).text
    again = visitor.send(f"{PRUNE}/form", {**Structure(other).values, **BY_PATH}).text
    risk = re.search(r'<select\s+id="at-params-risk".*?</select>', again, re.DOTALL)
    assert risk
    shown = re.search(r'<option value="(\w*)" selected>', risk[0])
    fields = Structure(again).values | {"step": "2", "params.alpha": str(path.alpha[2])}
    assert queued(visitor, **{**fields, **BY_PATH, "params.risk": shown[1] if shown else ""})["risk"] == "error"


def test_a_refused_form_shows_the_step_and_the_alpha_again(visitor: Browser, path: espalier.PruningPath) -> None:
    fields = {**BY_PATH, "step": "2", "params.alpha": "3.5", "holdout": "share", "holdout_fraction": "2"}
    html = visitor.refused(PRUNE, **fields)
    assert {name: Structure(html).values[name] for name in ("step", "params.alpha")} == {
        "step": "2",
        "params.alpha": "3.5",
    }
    assert f'id="says">{path.leaves[2]} leaves' in html


@pytest.mark.parametrize("step", ["99", "-1", "x"])
def test_a_step_that_the_path_does_not_have_is_its_last_or_its_first(
    visitor: Browser, path: espalier.PruningPath, step: str
) -> None:
    nearest = path.alpha[-1] if step == "99" else path.alpha[0]
    assert queued(visitor, **BY_PATH, step=step)["alpha"] == float(nearest)


def test_the_code_is_the_request_of_the_form_as_it_is_shown(visitor: Browser, path: espalier.PruningPath) -> None:
    html = visitor.get(PRUNE)
    assert coded(html)["params"] == {"alpha": float(path.alpha[0]), "risk": "error"}
    html = visitor.send(f"{PRUNE}/code", {**BY_PATH, "step": "2"}).text
    assert coded(html)["params"] == {"alpha": float(path.alpha[2]), "risk": "error"}
    body = coded(visitor.send(f"{PRUNE}/code", {"method": "pessimistic", "params.confidence": "0.1"}).text)
    assert (body["method"], body["params"]) == ("pessimistic", {"confidence": 0.1})
    assert "<html" not in html
