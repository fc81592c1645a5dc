"""Every page: it answers, keeps the strict policy, asks for nothing elsewhere, and labels its fields."""

import hashlib
import re
from pathlib import Path

import pytest

import service.web
from service.usecases import models
from service.web.versions import FILES
from tests.service.web.browser import Browser, Structure, text_of
from tests.service.web.conftest import Site

VENDOR = Path(service.web.__file__).parent / "static" / "vendor"
PAGES = [
    "/",
    "/login",
    "/datasets",
    "/datasets/{data_set}",
    "/datasets/{data_set}/profile",
    "/train",
    "/train?dataset={data_set}&preset=c45&pruning=pessimistic",
    "/jobs",
    "/jobs/{job}",
    "/models/tennis",
    *(f"/models/{name}/versions/1" for name in ("tennis", "hours", "linear", "rules")),
    "/models/tennis/versions/1?node=1",
    "/models/tennis/versions/1/tree?node=2&find=wind",
    *(f"/models/{name}/versions/1/rules" for name in ("tennis", "hours", "linear", "rules")),
    *(f"/models/{name}/versions/1/exports" for name in ("tennis", "hours", "linear", "rules")),
    *(f"/models/{name}/versions/1/figures" for name in ("tennis", "hours", "linear", "rules")),
    "/models/tennis/versions/1/rows?node=1",
    *(f"/models/{name}/versions/1/prune" for name in ("tennis", "hours", "linear", "rules")),
    "/models/tennis/versions/1/prune?method=reduced_error",
    "/models/tennis/versions/1/prune/preview?step=1",
    *(f"/models/{name}/try" for name in ("tennis", "hours", "linear", "rules")),
    *(f"/models/{name}/consultation" for name in ("tennis", "hours", "linear", "rules")),
    "/decisions",
    "/decisions?model=tennis&label=No&subject=jane&from=2020-01-01&to=2120-01-01T00:00:00%2B01:00",
    "/decisions/{decision}",
    "/decisions/{decision}/counterfactuals",
    "/compare",
    "/compare?left=tennis/1&right=tennis/2&dataset={data_set}",
    "/compare?left=tennis/1&right=rules/1",
    "/keys",
    "/about",
    "/about/checks",
]
FRAGMENTS = ("profile", "/tree", "/rules", "/exports", "/figures", "/rows", "preview", "counterfactuals", "checks")


def is_part(path: str) -> bool:
    return path.partition("?")[0].endswith(FRAGMENTS)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_keeps_the_strict_policy_and_labels_its_fields(site: Site, path: str) -> None:
    path = path.format(data_set=site.data_set, decision=site.decision, job=site.job)
    html = site.browser.get(path)
    found = Structure(html)
    assert found.forbidden == []
    assert [one for one in found.addresses if not one.startswith(("/ui/", "/static/", "#", "/docs"))] == []
    assert "" not in found.actions  # a form without an action is sent to the address at which it happens to be shown
    assert len(found.ids) == len(set(found.ids))
    assert found.labelled - {""} <= set(found.ids)
    assert found.lists <= set(found.ids)
    assert is_part(path) or "<h1>" in html
    assert "None" not in text_of(html).split()


def test_the_headers_allow_our_own_files_only_and_no_copy(site: Site) -> None:
    headers = site.browser.client.get("/ui/").headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert (policy["default-src"], policy["script-src"], policy["form-action"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"  # a form without a referrer has no origin, and is refused


@pytest.mark.parametrize(
    "path", ["/nothing", "/models/none", "/models/tennis/versions/99", "/datasets/x", "/models/none/try"]
)
def test_a_thing_that_is_gone_is_a_page_that_says_so(site: Site, path: str) -> None:
    html = site.browser.get(path, status=404)
    assert "there is no" in text_of(html)
    assert "<h1>Not found</h1>" in html


def test_the_problem_of_a_part_is_a_part(site: Site) -> None:
    html = site.browser.get("/models/none/versions/1/tree", status=404, **{"HX-Request": "true"})
    assert "<html" not in html
    assert "there is no model" in text_of(html)


@pytest.mark.parametrize("path", PAGES)
def test_what_a_button_fetches_is_also_reached_without_scripts(site: Site, path: str) -> None:
    html = site.browser.get(path.format(data_set=site.data_set, decision=site.decision, job=site.job))
    assert [tag for tag in re.findall(r"<button[^>]*>", html) if "hx-get" in tag] == []


@pytest.mark.parametrize("folder", ["htmx", "swagger-ui"])
def test_vendored_files_have_the_checksums_that_are_listed(folder: str) -> None:
    sums = dict(reversed(line.split()) for line in (VENDOR / folder / "SHA256SUMS").read_text().splitlines())
    files = {path.name for path in (VENDOR / folder).iterdir()} - {"SHA256SUMS"}
    assert files == sums.keys()
    for name, digest in sums.items():
        assert hashlib.sha256((VENDOR / folder / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("file", ["model.json", "python.py", "c.c", "sql-sqlite.sql", "onnx.onnx", "pmml.pmml", *FILES])
def test_a_version_can_be_downloaded(site: Site, file: str) -> None:
    response = site.browser.client.get(f"/ui/models/tennis/versions/1/files/{file}")
    assert response.status_code == 200
    assert response.headers["Content-Disposition"] == f'attachment; filename="tennis-1-{file}"'
    assert response.data


def test_rules_that_list_too_many_categories_are_not_written(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # Outlook has three categories, Humidity and Wind two each: the three tests of the tree of play-tennis.
    monkeypatch.setattr(models, "MAX_LISTED_CATEGORIES", 6)
    version = "/models/tennis/versions/1"
    for part in ("rules", "exports"):
        assert "list 7 categories; rules with at most 6" in text_of(site.browser.get(f"{version}/{part}"))
    for file in ("rules.txt", "rules-logic.txt", "python.py"):
        assert "list 7 categories" in text_of(site.browser.get(f"{version}/files/{file}", status=422))


def test_every_format_that_can_express_a_version_is_listed_once(site: Site) -> None:
    for name in ("tennis", "linear"):
        with site.browser.client.get(f"/ui/models/{name}/versions/1/exports") as response:
            links = [one for one in Structure(response.text).addresses if "/files/" in one]
        obstacles = site.browser.client.get(f"/v1/models/{name}/versions/1/export").json["formats"]
        formats = [one["format"] for one in obstacles if one["obstacle"] is None]
        assert [link.rpartition("/")[2].rpartition(".")[0] for link in links] == formats


def test_below_a_prefix_every_address_has_it(site: Site) -> None:
    client = site.browser.client
    with client.get("/ui/models/tennis/versions/1", environ_overrides={"SCRIPT_NAME": "/trees"}) as response:
        addresses = Structure(response.text).addresses
    assert [one for one in addresses if not one.startswith(("/trees/", "#"))] == []


def test_a_name_that_is_written_from_right_to_left_does_not_turn_the_numbers_behind_it(visitor: Browser) -> None:
    # Without <bdi>, a browser shows "AGE: 41 → 5" as "5 → 41 :AGE" if AGE is Arabic: a change the other way round.
    age, yes = "العمر", "نعم"
    data_set = visitor.served.train("ages", f"{age},y\n1,{yes}\n2,{yes}\n41,no\n42,no\n", target="y", preset="cart")
    answered = visitor.served.predict("ages", {"rows": [{age: 41}]})
    decision = f"/decisions/{answered['predictions'][0]['decision_id']}"
    for page, text in (
        (f"{decision}/counterfactuals", f"<bdi>{age}</bdi>: <bdi>41</bdi> → <bdi><strong>"),
        ("/models/ages/consultation", f"<bdi>{yes}</bdi>: 2 training rows"),
        (f"/datasets/{data_set}/profile", "Entropy of <bdi>y</bdi>: 1 bits"),
        (f"/models/ages/versions/1/tree?find={age}", f"<bdi>{age}</bdi>, 4 rows"),
        ("/", "<bdi>rows</bdi></a>: 4 rows"),
    ):
        assert text in re.sub(r"\s+", " ", visitor.get(page)), page
