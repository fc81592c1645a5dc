"""Forms: what is wrong stands at its field, nothing typed is lost, and nothing that was uploaded is markup."""

import io
import re
import shlex
import subprocess
import sys
from urllib.parse import quote

import orjson
import pytest

import espalier
from service.database.engine import read_session, transaction
from service.repositories import aliases, datasets, job_queue
from service.web.comparison import different_tests
from tests.factories import ROOT
from tests.service.served import HOURS, TENNIS, UNKNOWN
from tests.service.web.browser import Browser, Structure, faults_of, text_of

HOSTILE = "<script>alert(1)</script>\"'&amp; 🌳 " + "long" * 42
HOSTILE_CSV = f'"{HOSTILE.replace(chr(34), chr(34) * 2)}",play\n' + "".join(
    f'"{HOSTILE.replace(chr(34), chr(34) * 2)}{n % 2}",<b>{n % 2}</b>\n' for n in range(6)
)


def upload(visitor: Browser, csv: str = TENNIS, name: str = "tennis.csv", **fields: str) -> str:
    """Upload a file by the form; give the path of its page."""
    return visitor.change("/datasets", file=(io.BytesIO(csv.encode()), name), **fields)


def declared(visitor: Browser, page: str) -> espalier.Schema:
    with read_session(visitor.served.service.sessions) as session:
        return espalier.Schema.from_dict(datasets.find_data_set(session, page.partition("?")[0].split("/")[2]).declared)


def test_a_file_is_uploaded_and_shown_as_understood(visitor: Browser) -> None:
    page = upload(visitor, target="PlayTennis")
    text = text_of(visitor.get(page))
    assert "14 rows, 5 columns, 4 attributes; classification" in text
    assert "Overcast" in text


@pytest.mark.parametrize("ending", ["csv", "ndjson", "csv.gz"])
def test_the_name_of_a_file_says_its_format(visitor: Browser, ending: str) -> None:
    import gzip  # noqa: PLC0415

    rows = b'{"x": 1, "y": "a"}\n{"x": 2, "y": "b"}\n'
    content = {"csv": b"x,y\n1,a\n2,b\n", "ndjson": rows, "csv.gz": gzip.compress(b"x,y\n1,a\n2,b\n")}[ending]
    page = visitor.change("/datasets", file=(io.BytesIO(content), f"rows.{ending}"), target="y")
    assert "2 rows, 2 columns" in text_of(visitor.get(page))


def test_a_refused_upload_keeps_what_was_typed(visitor: Browser) -> None:
    html = visitor.refused(
        "/datasets",
        file=(io.BytesIO(TENNIS.encode()), "tennis.csv"),
        target="Plays",
        ignore="Wind",
        name="<mine>",
    )
    assert "there is no column" in faults_of(html, "target") or "no such column" in faults_of(html, "target")
    assert {name: Structure(html).values[name] for name in ("target", "ignore", "name")} == {
        "target": "Plays",
        "ignore": "Wind",
        "name": "<mine>",
    }


@pytest.mark.parametrize("fields", [{f"field {n}": "x" for n in range(30)}, {"name": "x" * 2_000_000}])
def test_an_upload_has_few_and_short_fields_beside_its_file(visitor: Browser, fields: dict[str, str]) -> None:
    parts = ({"csrf": visitor.token()} | fields).items()
    body = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in parts)
    answer = visitor.client.post(
        "/ui/datasets", data=f"{body}--b--\r\n", content_type="multipart/form-data; boundary=b"
    )
    assert answer.status_code == 413


def test_a_file_of_no_known_kind_is_told_at_its_field(visitor: Browser) -> None:
    html = visitor.refused("/datasets", file=(io.BytesIO(b"x"), "picture.png"))
    assert "must end in" in faults_of(html, "file")


def test_kinds_roles_order_and_tokens_are_changed_before_anything_is_learned(visitor: Browser) -> None:
    page = upload(visitor, target="PlayTennis")
    fields = {
        "target": "4",
        "kind-1": "ordinal",
        "order-1": "Cool\r\nMild\r\nHot",
        "role-3": "ignore",
        "missing_values": "none\r\n?",
    }
    visitor.change(page, **fields)
    schema = declared(visitor, page)
    assert schema.features[1].categories == ("Cool", "Mild", "Hot")
    assert schema.features[1].kind is espalier.FeatureKind.ORDINAL
    assert schema.features[3].role is espalier.Role.IGNORE
    assert schema.missing_values == ("none", "?")


def test_another_target_can_be_chosen(visitor: Browser) -> None:
    page = upload(visitor, HOURS, target="hours")
    visitor.change(page, target="0", task="regression")
    assert declared(visitor, page).task == "regression"
    visitor.change(page, target="")
    assert declared(visitor, page).target is None


def test_a_refused_declaration_stands_at_its_column(visitor: Browser) -> None:
    page = upload(visitor, target="PlayTennis")
    html = visitor.refused(page, **{"target": "4", "kind-2": "numeric", "role-0": "ignore"})
    assert "must be a finite number" in faults_of(html, "kind-2")
    assert '<select name="role-0"' in html
    assert "<option selected>ignore</option>" in html


def test_a_data_set_that_is_used_is_not_deleted(visitor: Browser) -> None:
    data_set = visitor.served.train("tennis")
    assert "was trained on" in text_of(visitor.refused(f"/datasets/{data_set}/delete", status=409))
    other = upload(visitor)
    assert visitor.change(f"{other}/delete") == "/datasets"
    visitor.get(other, status=404)


def test_a_training_whose_table_stays_on_disk_is_queued_with_its_limit(visitor: Browser) -> None:
    data_set = upload(visitor, target="PlayTennis").split("/")[2]
    typed = {"model": "t", "dataset": data_set, "memory_limit": "1GB"}
    html = visitor.refused("/train", **typed)
    assert faults_of(html, "memory_limit")
    assert Structure(html).values["memory_limit"] == "1GB"
    page = visitor.change("/train", **typed | {"memory_limit": " 20000000 "})
    with read_session(visitor.served.service.sessions) as session:
        assert job_queue.find_job(session, page.split("/")[2]).payload["memory_limit"] == 20_000_000


def test_every_fault_of_a_training_stands_at_its_field(visitor: Browser) -> None:
    data_set = upload(visitor, target="PlayTennis").split("/")[2]
    typed = {
        "model": "a b",
        "dataset": data_set,
        "preset": "cart",
        "params.max_depth": "-3",
        "params.min_weight_leaf": "two",
        "pruning": "pessimistic",
        "pruning.confidence": "7",
        "holdout": "share",
        "holdout_fraction": "1.5",
    }
    html = visitor.refused("/train", **typed)
    for name in ("model", "params.max_depth", "params.min_weight_leaf", "pruning.confidence", "holdout_fraction"):
        assert "must" in faults_of(html, name) or "has 1 to 64" in faults_of(html, name), name
        assert Structure(html).values[name] == typed[name]


@pytest.mark.parametrize("method", ["", "none", *espalier.PRUNERS])
@pytest.mark.parametrize("preset", espalier.PRESETS)
def test_the_form_has_every_field_of_preset_and_method(visitor: Browser, preset: str, method: str) -> None:
    html = visitor.send("/train/form", {"preset": preset, "pruning": method, "params.max_depth": "7"}).text
    for info in espalier.field_table(espalier.TrainingConfig):
        assert f'name="params.{info.name}"' in html or info.name == "pruning"
    for info in espalier.field_table(espalier.PRUNERS[method]) if method in espalier.PRUNERS else ():
        assert f'name="pruning.{info.name}"' in html
    assert Structure(html).values["params.max_depth"] == "7"


def test_a_training_is_queued_as_the_form_describes_it(visitor: Browser) -> None:
    data_set = upload(visitor, target="PlayTennis").split("/")[2]
    page = visitor.change(
        "/train",
        **{
            "model": "t",
            "dataset": data_set,
            "preset": "c45",
            "params.max_depth": "2",
            "params.attribute_costs": '{"Wind": 2}',
            "params.cost_function": "norton",
            "params.mdl_correction": "false",
            "params.criterion": "gini",
            "pruning": "none",
            "holdout": "share",
            "holdout_fraction": "0.3",
            "holdout_stratified": "true",
        },
    )
    with read_session(visitor.served.service.sessions) as session:
        payload = job_queue.find_job(session, page.split("/")[2]).payload
    config = payload["config"]
    assert (config["preset"], config["max_depth"], config["pruning"]) == ("c45", 2, None)
    assert (config["attribute_costs"], config["mdl_correction"], config["criterion"]) == ({"Wind": 2.0}, False, "gini")
    assert payload["holdout"] == {"fraction": 0.3, "stratified": True}


def test_the_code_beside_the_form_is_its_request(visitor: Browser) -> None:
    html = visitor.send(
        "/train/code", {"model": "it's", "dataset": "x", "preset": "cart", "params.max_depth": "2"}
    ).text
    code = [re.sub("<[^>]+>", "", part) for part in re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)]
    import html as escaping  # noqa: PLC0415

    shell, python = map(escaping.unescape, code)
    body = {"model": "it's", "dataset": "x", "preset": "cart", "params": {"max_depth": 2}, "holdout": None}
    words = shlex.split(shell)
    assert orjson.loads(words[words.index("-d") + 1]) == body
    shown = python.partition("request =")[0] + "print(json.dumps(body))"
    ran = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert orjson.loads(ran.stdout) == body
    compile(python, "shown", "exec")


def test_the_code_of_a_new_form_names_the_data_set_and_the_preset_that_it_shows(visitor: Browser) -> None:
    data_set = upload(visitor, target="PlayTennis").split("/")[2]
    shown = text_of(visitor.get("/train")).replace("&#34;", '"')
    assert f'"dataset":"{data_set}","preset":"cart"' in shown


def test_names_of_others_are_never_markup(visitor: Browser) -> None:
    page = upload(visitor, HOSTILE_CSV, target="play")
    data_set = page.split("/")[2]
    visitor.served.train("evil", HOSTILE_CSV, target="play", preset="id3")
    row = {"v-0": "0", "subject": HOSTILE[:190]}
    answered = visitor.send("/models/evil/try", row).text
    [decision] = set(re.findall(r"/ui(/decisions/[0-9a-f-]+)\"", answered))
    pages = [page, f"/datasets/{data_set}/profile", "/models/evil/versions/1", "/models/evil/try", decision]
    pages += [f"/models/evil/versions/1/{part}" for part in ("tree?node=1&find=<script>", "rules", "figures", "prune")]
    pages += ["/", "/datasets", "/decisions", "/models/evil/consultation", "/models/evil/versions/1/rows?node=0"]
    for path in pages:
        html = visitor.get(path)
        assert "<script>alert" not in html, path
        assert "<b>" not in html, path
        assert Structure(html).forbidden == [], path
    assert "<script>alert" not in answered
    assert "🌳" in answered


def test_a_row_that_cannot_be_read_is_told_at_its_field_and_kept(visitor: Browser) -> None:
    visitor.served.train("hours", HOURS, target="hours", preset="cart")
    html = visitor.refused("/models/hours/try", **{"v-0": "twelve"})
    assert "must be a finite number" in faults_of(html, "v-0")
    assert Structure(html).values["v-0"] == "twelve"


def test_an_answer_has_its_way_its_sentence_and_its_contributions(visitor: Browser) -> None:
    visitor.served.train("tennis")
    sunny, high = "2", "0"  # places among the sorted categories
    text = text_of(visitor.send("/models/tennis/try", {"v-0": sunny, "v-2": high}).text)
    assert "if Outlook is Sunny and Humidity is High then No" in text
    assert "Shapley value" in text


def test_a_consultation_asks_one_question_at_a_time(visitor: Browser) -> None:
    visitor.served.train("tennis")
    html = visitor.get("/models/tennis/consultation")
    assert "Question 1" in html
    assert ">Outlook</label>" in html
    html = visitor.send("/models/tennis/consultation", {"known": "{}", "place": "0", "v-0": "2"}).text
    assert ">Humidity</label>" in html
    known = '{"Outlook": "Sunny"}'
    back = visitor.send("/models/tennis/consultation", {"known": known, "back": "1"}).text
    assert ">Outlook</label>" in back
    end = visitor.send("/models/tennis/consultation", {"known": known, "place": "2", "v-2": "0"}).text
    assert '<p class="answer">No</p>' in end
    assert "Decide and log it" in end


@pytest.mark.parametrize("known", ["", "[]", "{", '{"Outlook": 7}', '{"PlayTennis": "No"}', '{"x": 1}'])
def test_a_damaged_consultation_is_refused(visitor: Browser, known: str) -> None:
    visitor.served.train("tennis")
    assert visitor.send("/models/tennis/consultation", {"known": known}).status_code == 422


@pytest.mark.parametrize("version", ["7", "abc", "-1", "1.0"])
def test_a_version_that_is_none_does_not_answer(visitor: Browser, version: str) -> None:
    visitor.served.train("tennis")
    for page in ("/models/tennis/try", "/models/tennis/consultation"):
        html = visitor.get(f"{page}?version={version}", status=404)
        assert f"there is no version &#39;tennis/{version}&#39;" in html
        visitor.refused(page, version=version, status=404)


def test_an_outcome_that_is_no_class_is_told_at_its_field(visitor: Browser) -> None:
    visitor.served.train("tennis")
    answer = visitor.served.predict("tennis", {"rows": [{"Outlook": "Sunny"}]})
    page = f"/decisions/{answer['predictions'][0]['decision_id']}"
    html = visitor.refused(f"{page}/outcome", outcome="Maybe")
    assert "must be one of the model&#39;s classes" in faults_of(html, "outcome")
    assert visitor.change(f"{page}/outcome", outcome="Yes") == page
    assert "True outcome: Yes , so the answer was" in text_of(visitor.get(page))


def test_spaces_around_a_text_keep_their_meaning(visitor: Browser) -> None:
    pairs = "".join(f"c{n},a\n c{n}, a\n" for n in range(110))  # too many categories for a menu
    visitor.served.train("spaces", f"code,y\n{pairs}", target="y")
    for typed, answered in ((" c7", " a"), ("c7", "a"), ("c7 ", "a")):
        html = visitor.send("/models/spaces/try", {"v-0": typed}).text
        assert f'<p class="answer">{answered}</p>' in html
    answer = visitor.served.predict("spaces", {"rows": [{"code": " c7"}], "subject": " Ada "})
    page = f"/decisions/{answer['predictions'][0]['decision_id']}"
    for typed, right in ((" a", "right"), ("a", "wrong"), (" a ", "wrong")):
        visitor.change(f"{page}/outcome", outcome=typed)
        assert f"so the answer was {right}" in text_of(visitor.get(page))
    for query in ("label=%20a", "subject=%20Ada%20"):
        assert page in visitor.get(f"/decisions?{query}")
    assert page not in visitor.get("/decisions?subject=Ada")


@pytest.mark.parametrize("text", ["+5", ".5", " 5. ", "5"])
def test_a_number_is_written_in_every_form_as_in_a_row(visitor: Browser, text: str) -> None:
    visitor.served.train("hours", HOURS, target="hours", preset="cart")
    answer = visitor.served.predict("hours", {"rows": [{"size": 11}]})
    page = f"/decisions/{answer['predictions'][0]['decision_id']}"
    assert visitor.change(f"{page}/outcome", outcome=text) == page
    assert f"True outcome: {float(text):g}" in text_of(visitor.get(page))
    query = quote(text)
    assert "gives" in visitor.get(f"{page}/counterfactuals?low={query}&high=%2B20.")
    assert "smallest wanted number" in visitor.get(f"{page}/counterfactuals?low=%20&high=")


def test_a_decision_whose_inputs_are_masked_or_erased_says_why_it_is_not_verified(visitor: Browser) -> None:
    visitor.served.train("tennis")
    answer = visitor.served.predict("tennis", {"rows": [{"Outlook": "Sunny"}], "subject": "jane"})
    page = f"/decisions/{answer['predictions'][0]['decision_id']}"
    assert "Verified: the version makes the same decision today" in text_of(visitor.get(page)).replace(" :", ":")
    visitor.served.client.delete("/v1/decisions?subject=jane")
    assert "Cannot be verified: the inputs were erased" in text_of(visitor.get(page)).replace(" :", ":")


@pytest.mark.parametrize("field", ["version", "leaf", "from", "to"])
def test_a_filter_that_cannot_be_read_is_told_at_its_field(visitor: Browser, field: str) -> None:
    html = visitor.get(f"/decisions?{field}=soon", status=422)
    assert "must be a" in faults_of(html, field)
    assert Structure(html).values[field] == "soon"


@pytest.mark.parametrize("query", ["leaf=-1", "version=0", "version=99999999999"])
def test_a_filter_out_of_range_is_told_its_range(visitor: Browser, query: str) -> None:
    field = query.partition("=")[0]
    message = faults_of(visitor.get(f"/decisions?{query}", status=422), field)
    assert message == f"must be a whole number from {int(field == 'version')} to 2147483647"


@pytest.mark.parametrize("cursor", ["", ":", "a:b", f"{UNKNOWN}:x"])
def test_a_cursor_that_is_none_is_told(visitor: Browser, cursor: str) -> None:
    html = visitor.get(f"/decisions?cursor={cursor}", status=422)
    assert "cursor : must be the `next` of the previous page" in text_of(html)
    visitor.get(f"/decisions?cursor={UNKNOWN}:3")
    for page in ("jobs", "datasets"):
        assert "must be the `next` of the previous page" in text_of(visitor.get(f"/{page}?cursor={cursor}", status=422))


def test_aliases_are_promoted_and_rolled_back(visitor: Browser) -> None:
    visitor.served.train("tennis")
    visitor.served.train("tennis")
    for version in ("1", "2"):
        visitor.change("/models/tennis/aliases", alias="production", version=version)
    visitor.change("/models/tennis/aliases/production/rollback")
    with read_session(visitor.served.service.sessions) as session:
        assert [one.version.number for one in aliases.history(session, "tennis", "production").items] == [1, 2, 1]
    html = visitor.refused("/models/tennis/aliases", alias="1", version="2")
    assert "begins with a letter" in faults_of(html, "alias")
    assert "has no previous version" in text_of(
        visitor.refused("/models/tennis/aliases/production/rollback", status=409)
    )


def test_the_first_page_says_which_version_answers(visitor: Browser) -> None:
    visitor.served.train("tennis")
    assert text_of(visitor.get("/")).count(" the newest ") == 1
    for alias in ("a", "b"):
        visitor.change("/models/tennis/aliases", alias=alias, version="1")
    assert "a: version 1 , b: version 1 , the newest " in text_of(visitor.get("/"))
    visitor.change("/models/tennis/aliases", alias="production", version="1")
    html = text_of(visitor.get("/"))
    assert "b: version 1 , production: version 1 " in html
    assert " the newest " not in html


def test_a_pruning_is_queued_from_a_step_of_the_path(visitor: Browser) -> None:
    visitor.served.train("tennis")
    html = visitor.get("/models/tennis/versions/1/prune")
    path = espalier.pruning_path(espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3"), "error")
    assert re.findall(r'data-alpha="([^"]+)"', html) == [repr(alpha) for alpha in path.alpha.tolist()]
    job = visitor.change(
        "/models/tennis/versions/1/prune",
        **{"method": "cost_complexity", "params.alpha": repr(float(path.alpha[-1])), "params.risk": "error"},
    )
    with read_session(visitor.served.service.sessions) as session:
        assert job_queue.find_job(session, job.split("/")[2]).payload["params"] == {
            "alpha": float(path.alpha[-1]),
            "risk": "error",
        }


def test_the_preview_marks_what_becomes_a_leaf(visitor: Browser) -> None:
    visitor.served.train("tennis")
    html = visitor.get("/models/tennis/versions/1/prune/preview?step=99")
    assert "1 node becomes a leaf" in text_of(html)  # the root alone
    assert html.count('class="differs"') == 1


def test_the_preview_counts_no_node_below_a_pruned_node(visitor: Browser) -> None:
    rows = (ROOT / "service/examples/drug200.csv").read_text()
    visitor.served.train("drug", rows, preset="cart", target="Drug")
    model = espalier.train(espalier.dataset_from_csv(rows, target="Drug"), "cart")
    path, parent, n_nested = espalier.pruning_path(model, "error"), model.tree.parent.tolist(), 0
    for step in range(1, len(path.alpha)):
        gone = set(path.collapsed(step).tolist())
        above = {node: {parent[node]} for node in gone}
        for node in gone:
            while min(above[node]) >= 0:
                above[node].add(parent[min(above[node])])
        n_top = sum(gone.isdisjoint(above[node]) for node in gone)
        n_nested += len(gone) - n_top
        html = visitor.get(f"/models/drug/versions/1/prune/preview?step={step}")
        assert f" {n_top} node" in text_of(html)
        assert html.count('class="differs"') == n_top
    assert n_nested > 0


def test_the_comparison_shows_what_differs_and_the_rows_whose_answer_changes(visitor: Browser) -> None:
    visitor.served.train("tennis")
    data_set = visitor.served.train("tennis")
    visitor.served.keep(
        "tennis", espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3", max_depth=0)
    )
    same = text_of(visitor.get(f"/compare?left=tennis/1&right=tennis/2&dataset={data_set}"))
    assert "0 of 14 rows" in same
    assert same.count("Nothing differs.") == 2
    html = visitor.get(f"/compare?left=tennis/1&right=tennis/3&dataset={data_set}")
    assert "5 of 14 rows" in text_of(html)  # the stump answers Yes; five rows are No
    assert "max_depth" in text_of(html.partition("The same in both")[0])
    assert html.count('class="differs"') >= 2


def test_leaves_with_other_equations_differ() -> None:
    data = espalier.dataset_from_file(ROOT / "service/examples/drug200.csv", target="Age")
    smoothed, own = (espalier.train(data, "m5", smoothing=constant) for constant in (15.0, None))
    assert different_tests(smoothed, smoothed) == (set(), set())
    assert all(different_tests(smoothed, own))


def test_the_rows_of_a_node_are_the_training_rows_that_reach_it(visitor: Browser) -> None:
    visitor.served.train("tennis")
    tree = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3").tree
    html = visitor.get("/models/tennis/versions/1/rows?node=1")
    assert f"{int(tree.weight[1])} rows of the data set reach this node" in text_of(html)


def test_an_attribute_is_found_in_the_tree(visitor: Browser) -> None:
    visitor.served.train("tennis")
    assert "1 node tests an attribute" in text_of(visitor.get("/models/tennis/versions/1/tree?find=HUMID"))
    assert "No node tests an attribute" in text_of(visitor.get("/models/tennis/versions/1/tree?find=nothing"))


def test_a_job_is_cancelled_tried_again_and_watched_to_its_end(visitor: Browser) -> None:
    data_set = upload(visitor, target="PlayTennis").split("/")[2]
    page = visitor.change("/train", model="t", dataset=data_set, preset="cart")
    assert "hx-sse:connect" in visitor.get(page)
    visitor.change(f"{page}/cancel")
    html = visitor.get(page)
    assert "hx-sse:connect" not in html
    assert "cancelled" in text_of(html)
    stream = visitor.client.get(f"/ui{page}/progress")
    assert stream.content_type.startswith("text/event-stream")
    assert stream.text.endswith("event: end\ndata: the job has ended\n\n")
    visitor.change(f"{page}/retry")
    assert "waiting for a worker" in text_of(visitor.get(page))
    visitor.refused(f"{page}/retry", status=409)


def test_the_error_of_a_job_is_shown_in_full(visitor: Browser) -> None:
    data_set = upload(visitor, target="PlayTennis").split("/")[2]
    page = visitor.change("/train", model="t", dataset=data_set, preset="cart")
    with transaction(visitor.served.service.sessions) as session:
        held = job_queue.claim(session, worker="w", lease_seconds=60)
        assert held
        job_queue.fail_or_retry(session, held, error={"code": "x", "message": "out of <memory>"}, retryable=False)
    assert "out of &lt;memory&gt;" in visitor.get(page)


def test_a_long_list_of_rules_is_not_searched_for_a_page(visitor: Browser) -> None:
    rows = "x,y\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(240))  # a leaf, and so a rule, for each row
    visitor.served.keep(
        "long", espalier.extract_rules(espalier.train(espalier.dataset_from_csv(rows, target="y"), "cart"))
    )
    answer = visitor.served.predict("long", {"rows": [{"x": 3.0}]})
    html = visitor.get(f"/decisions/{answer['predictions'][0]['decision_id']}/counterfactuals")
    assert "does not search a list of 240 rules" in text_of(html)
