"""Logging in with a key: cookie, scopes, token, same origin."""

import io
import re
from collections.abc import Iterator

import pytest

from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.repositories import job_queue, keys
from service.settings import Settings
from service.web.pages import pages
from tests.service.guarded import token_of
from tests.service.served import TENNIS, Served, serving
from tests.service.web.browser import Browser, Structure, log_in, text_of


@pytest.fixture
def guarded(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite, auth="keys") as served:
        served.train("tennis")
        yield served


def test_without_a_login_a_page_leads_to_the_form_and_back(guarded: Served) -> None:
    browser = Browser(guarded)
    response = browser.client.get("/ui/datasets?cursor=x")
    assert (response.status_code, response.headers["Location"]) == (303, "/ui/login?back=/ui/datasets?cursor%3Dx")
    answer = browser.send("/login", {"key": token_of(guarded, Scope.READ), "back": "/ui/datasets"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/datasets")
    assert "Data sets" in browser.get("/datasets")


def test_the_cookie_is_for_http_only_and_for_this_site(guarded: Served) -> None:
    token = token_of(guarded, Scope.READ)
    cookie = log_in(Browser(guarded), token).headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert token not in cookie
    assert token.split("_", 2)[2] not in cookie  # the secret may hold underscores


@pytest.mark.parametrize("key", ["", "hunter2", "esp_01890000-0000-7000-8000-000000000000_" + "a" * 43])
def test_a_wrong_key_is_told_on_the_form(guarded: Served, key: str) -> None:
    answer = log_in(Browser(guarded), key)
    assert answer.status_code == 401
    assert "key" in text_of(answer.text)
    assert key not in answer.text or key == ""


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example/", "/ui\\evil", "/ui/\n", "x"])
def test_a_login_leads_to_no_other_site(guarded: Served, back: str) -> None:
    answer = Browser(guarded).send("/login", {"key": token_of(guarded, Scope.READ), "back": back})
    assert answer.headers["Location"] == "/ui/"


def test_logging_out_ends_the_session(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.READ))
    assert browser.change("/logout") == "/login"
    assert browser.client.get("/ui/datasets").status_code == 303


def test_a_revoked_key_ends_its_sessions(guarded: Served) -> None:
    browser, token = Browser(guarded), token_of(guarded, Scope.READ)
    log_in(browser, token)
    browser.get("/datasets")
    with transaction(guarded.service.sessions) as session:
        keys.revoke(session, token.split("_")[1])
    guarded.service.keys.forget()
    assert browser.client.get("/ui/datasets").status_code == 303


def test_a_forged_cookie_is_none(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.ADMIN))
    [cookie] = list(browser.client._cookies.values())
    forged = cookie.value[:-4] + ("AAAA" if cookie.value[-4:] != "AAAA" else "BBBB")
    browser.client.set_cookie(cookie.key, forged, path="/")
    assert browser.client.get("/ui/datasets").status_code == 303


@pytest.mark.parametrize("auth", ["none", "keys"])
@pytest.mark.parametrize("attack", ["no token", "wrong token", "another session's token", "another site"])
def test_a_change_needs_the_token_of_the_session_and_the_same_origin(
    on_sqlite: Settings, auth: str, attack: str
) -> None:
    with serving(on_sqlite, auth=auth) as served:
        browser, other = Browser(served), Browser(served)
        if auth == "keys":
            log_in(browser, token_of(served, Scope.ADMIN))
            log_in(other, token_of(served, Scope.ADMIN))
        data_set = served.train("tennis")
        fields = {
            "no token": {},
            "wrong token": {"csrf": "x"},
            "another session's token": {"csrf": other.token()},
            "another site": {"csrf": browser.token()},
        }[attack]
        headers = {"Sec-Fetch-Site": "cross-site" if attack == "another site" else "same-origin"}
        for path in (f"/ui/datasets/{data_set}/delete", "/ui/models/tennis/versions/1/archive", "/ui/logout"):
            assert browser.client.post(path, data=fields, headers=headers).status_code == 403, path
        assert served.service.versions.resolve("tennis").version.number == 1


@pytest.mark.parametrize("scope", Scope)
def test_a_page_opens_to_the_scopes_that_it_names(guarded: Served, scope: Scope) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, scope))
    arguments = {
        "data_set_id": "01890000-0000-7000-8000-000000000000",
        "job_id": "01890000-0000-7000-8000-000000000000",
        "decision_id": "01890000-0000-7000-8000-000000000000",
        "key_id": "01890000-0000-7000-8000-000000000000",
        "name": "tennis",
        "number": "1",
        "alias": "production",
        "file": "tree.svg",
        "rest": "x",
    }
    token = browser.token()
    n_pages = 0
    for rule in guarded.client.application.url_map.iter_rules():
        if not rule.endpoint.startswith("pages.") or rule.endpoint == "pages.log_out":
            continue
        path = rule.build(arguments)[1]
        needed = pages.scopes[rule.endpoint]
        method = "POST" if "POST" in (rule.methods or ()) else "GET"
        status = browser.client.open(path, method=method, data={"csrf": token}).status_code
        if needed and scope not in (*needed, Scope.ADMIN):
            assert status == 403, path
        elif rule.endpoint != "pages.log_in":
            assert status not in (401, 403, 500), path
        n_pages += 1
    assert n_pages > 40


def test_what_a_key_does_not_allow_is_not_offered(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.READ))
    html = browser.get("/models/tennis")
    assert "Promote" not in html
    assert "/ui/keys" not in html
    assert "/ui/decisions" not in html


def test_a_key_limited_to_models_sees_no_other(guarded: Served) -> None:
    guarded.train("secret")
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.READ, Scope.AUDIT, models=["tennis"]))
    assert "secret" not in browser.get("/")
    assert "secret" not in browser.get("/compare")
    for path in ("/models/secret", "/models/secret/versions/1", "/compare?left=secret/1&right=tennis/1"):
        assert "this key reaches only" in text_of(browser.get(path, status=403))


def test_a_session_survives_in_another_process_with_the_same_secret(on_sqlite: Settings) -> None:
    secret = "s" * 40
    with serving(on_sqlite, auth="keys", session_secret=secret) as served:
        browser = Browser(served)
        log_in(browser, token_of(served, Scope.READ))
        [cookie] = list(browser.client._cookies.values())
    for given, status in ((secret, 200), ("t" * 40, 303)):
        with serving(on_sqlite, auth="keys", session_secret=given) as served:
            other = Browser(served)
            other.client.set_cookie(cookie.key, cookie.value, path="/")
            assert other.client.get("/ui/datasets").status_code == status


def test_a_new_key_is_shown_once(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.ADMIN))
    made = browser.send("/keys", {"name": "sensor", "scope": ["predict"]})
    token = made.text.partition('<pre tabindex="0">')[2].partition("</pre>")[0]
    assert guarded.service.keys.identify(guarded.service.sessions, token).scopes == {Scope.PREDICT}
    assert token not in browser.get("/keys")
    refused = browser.refused("/keys", name="", scope=["predict"], expires="2020-01-01")
    assert "1 to 200 printable characters" in refused


def test_a_form_that_is_sent_again_creates_no_second_key(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.ADMIN))
    fields = {"once": Structure(browser.get("/keys")).values.get("once", ""), "name": "sensor"}
    refused = browser.refused("/keys", **fields)  # no scope is chosen
    assert "give at least one of" in refused
    made = browser.send("/keys", {**fields, "scope": ["predict"]})
    assert made.status_code == 200
    again = browser.refused("/keys", status=409, **{**fields, "scope": ["predict"]})
    assert "this form was sent before" in text_of(again)
    assert browser.get("/keys").count('<th scope="row">sensor ') == 1
    other = browser.send("/keys", {**fields, "once": Structure(made.text).values["once"], "scope": ["predict"]})
    assert other.status_code == 200
    assert browser.get("/keys").count('<th scope="row">sensor ') == 2


def test_a_key_that_may_not_read_sees_no_data_sets_and_models_in_a_form(guarded: Served) -> None:
    upload = {"file": (io.BytesIO(TENNIS.encode()), "salaries.csv"), "target": "PlayTennis"}
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.TRAIN, Scope.READ))
    page_of_data_set = browser.change("/datasets", **upload)
    log_in(browser, token_of(guarded, Scope.TRAIN))
    for path in ("/train", "/models/tennis/versions/1/prune"):
        assert "salaries" not in browser.get(path), path
    assert 'value="tennis"' not in browser.get("/train")
    # It trains on a data set whose id it types.
    assert '<input id="at-dataset"' in re.sub(r"\s+", " ", browser.get("/train"))
    assert browser.change("/train", model="t", dataset=page_of_data_set.split("/")[2]) == "/"


def test_an_outcome_shows_a_decision_only_to_the_scope_audit(guarded: Served) -> None:
    token = token_of(guarded, Scope.PREDICT)
    row = {"rows": [{"Outlook": "Sunny"}]}
    answer = guarded.client.post("/v1/models/tennis/predict", json=row, headers={"Authorization": f"Bearer {token}"})
    path = f"/decisions/{answer.json['predictions'][0]['decision_id']}"
    browser = Browser(guarded)
    log_in(browser, token)
    html = browser.refused(f"{path}/outcome", outcome="Maybe")
    assert "must be one of the model&#39;s classes" in html
    assert "Sunny" not in html
    assert browser.change(f"{path}/outcome", outcome="No") == "/"
    log_in(browser, token_of(guarded, Scope.PREDICT, Scope.AUDIT))
    assert "Sunny" in browser.refused(f"{path}/outcome", outcome="Maybe")
    assert browser.change(f"{path}/outcome", outcome="No") == path


def test_a_change_by_a_key_that_may_not_read_shows_nothing(guarded: Served) -> None:
    data_set = guarded.train("tennis")
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.TRAIN))
    form, _, uploaded = browser.change("/datasets", file=(io.BytesIO(TENNIS.encode()), "tennis.csv")).partition("=")
    assert form == "/train?dataset"  # it may train on what it uploaded
    assert Structure(browser.get(f"{form}={uploaded}")).values["dataset"] == uploaded
    for path, fields in (
        (f"/datasets/{uploaded}", {"missing_values": "none"}),
        ("/train", {"model": "tennis", "dataset": data_set}),
        ("/models/tennis/aliases", {"alias": "production", "version": "2"}),
        ("/models/tennis/versions/1/archive", {}),
    ):
        assert browser.change(path, **fields) == "/", path
    with read_session(guarded.service.sessions) as session:
        [job] = job_queue.list_jobs(session).items
    for path, fields, status in (
        (f"/datasets/{data_set}", {"kind-0": "numeric"}, 422),
        (f"/datasets/{data_set}/delete", {}, 409),
        (f"/jobs/{job.id}/retry", {}, 409),
        ("/models/tennis/aliases", {"alias": "1", "version": "2"}, 422),
        ("/models/tennis/versions/2/archive", {}, 409),
    ):
        html = browser.refused(path, status=status, **fields)
        assert "Go to the first page" in html, path  # the page of a problem
    assert browser.change(f"/jobs/{job.id}/cancel") == "/"


@pytest.mark.parametrize("scopes", [(Scope.PREDICT,), (Scope.PREDICT, Scope.READ)])
def test_the_whole_tree_is_drawn_only_for_a_key_that_may_read(guarded: Served, scopes: tuple[Scope, ...]) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, *scopes))
    html = browser.send("/models/tennis/try", {"v-0": "2", "v-2": "0"}).text
    assert "if Outlook is Sunny and Humidity is High then No" in text_of(html)
    assert ('id="path"' in html) == (Scope.READ in scopes)


def test_a_key_that_may_only_train_uploads_on_the_page_that_it_is_led_to(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.TRAIN))
    links = re.findall(r'href="/ui([^"]*)"', browser.get("/"))
    assert "/datasets" in links
    html = "".join(map(browser.get, links))  # each of them opens
    assert 'name="file"' in html
    assert ">rows<" not in html  # the name of the data set that was stored before
    upload = {"file": (io.BytesIO(TENNIS.encode()), "t.csv"), "target": "Play"}
    assert Structure(browser.refused("/datasets", **upload)).values["target"] == "Play"


@pytest.mark.parametrize(("typed", "expected"), [(",", 422), (" , ", 422), (" ", 200), ("tennis,", 200)])
def test_a_list_of_no_model_makes_no_key_for_all_models(guarded: Served, typed: str, expected: int) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.ADMIN))
    response = browser.send("/keys", {"name": "sensor", "scope": ["predict"], "models": typed})
    assert response.status_code == expected, text_of(response.text)


def test_back_after_the_end_of_a_session_leads_to_the_login(guarded: Served) -> None:
    # The script replaces the whole page with what it fetches after Back.
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    response = Browser(guarded).client.get("/ui/models/tennis/versions/1?node=1", headers=headers)
    assert response.status_code == 303
    assert "/ui/login?back=" in response.headers["Location"]


def test_the_list_of_keys_says_when_each_expires(guarded: Served) -> None:
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.ADMIN))
    for name, expires in (("sensor", "2099-12-31"), ("shop", "")):
        assert browser.send("/keys", {"name": name, "scope": ["predict"], "expires": expires}).status_code == 200
    rows = [text_of(row) for row in browser.get("/keys").split("<tr>")]
    [sensor], [shop] = ([row for row in rows if name in row] for name in ("sensor", "shop"))
    assert "2099-12-31 00:00:00 UTC" in sensor
    assert "never" in shop


@pytest.mark.parametrize("models", [None, ["tennis"]])
def test_a_key_that_is_limited_to_models_is_not_offered_a_change_of_a_data_set(
    guarded: Served, models: list[str] | None
) -> None:
    data_set = guarded.train("tennis")
    browser = Browser(guarded)
    log_in(browser, token_of(guarded, Scope.READ, Scope.TRAIN, models=models))
    html = browser.get(f"/datasets/{data_set}")
    assert "Train a model on it" in html
    for offer in ("Change the declaration", "Delete this data set"):
        assert (offer in html) == (models is None), offer
