"""Pages that are shown again at the address of a refused form: their links and forms lead to pages."""

import re

import pytest

from service.database.engine import read_session
from service.repositories import job_queue
from service.web import models
from tests.service.served import TENNIS
from tests.service.web.browser import Browser, Structure, faults_of

OTHER_DAYS = "\n".join(TENNIS.splitlines()[:9])


def test_older_versions_are_reached_after_a_refused_promotion(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "SHOWN", 1)
    for _ in range(2):
        visitor.served.train("tennis")
    html = visitor.refused("/models/tennis/aliases", alias="1", version="1")
    older = re.search(r'href="([^"]*)">Older ones', html)
    assert older
    assert older[1].startswith("/ui/models/tennis?cursor=")
    assert "version 1" in visitor.get(older[1].removeprefix("/ui"))


def test_every_address_of_a_page_after_a_refusal_is_complete(visitor: Browser) -> None:
    data_set = visitor.served.train("tennis")
    answer = visitor.served.predict("tennis", {"rows": [{"Outlook": "Sunny"}]})
    job = visitor.change("/train", model="tennis", dataset=data_set, preset="cart")
    visitor.change(f"{job}/cancel")
    visitor.change("/models/tennis/aliases", alias="production", version="1")
    decision = f"/decisions/{answer['predictions'][0]['decision_id']}"
    for path, status in (
        (f"/datasets/{data_set}/delete", 409),
        (f"{job}/cancel", 409),
        ("/models/tennis/aliases", 422),
        ("/models/tennis/aliases/production/rollback", 409),
        ("/models/tennis/versions/1/archive", 409),
        (f"{decision}/outcome", 422),
        ("/models/tennis/versions/1/prune", 422),
        ("/train", 422),
        ("/datasets", 422),
    ):
        fields = {"method": "none"} if path.endswith("prune") else {}
        found = Structure(visitor.refused(path, status=status, **fields))
        assert "" not in found.actions, path
        assert [one for one in found.addresses if not one.startswith(("/ui/", "/static/", "#"))] == [], path


def test_the_link_of_a_fault_inside_a_field_leads_to_the_fault(visitor: Browser) -> None:
    uploaded = visitor.served.upload("a,b,y\n1,3,0\n2,4,1\n", target="y")
    for path, fields in (
        (f"/datasets/{uploaded['id']}", {"kind-0": "none"}),
        (f"/datasets/{uploaded['id']}", {"role-0": "weight", "role-1": "weight"}),
        ("/train", {"model": "m", "dataset": uploaded["id"], "params.class_weight": '{"q": 1}'}),
    ):
        html = visitor.refused(path, **fields)
        links = re.findall(r'href="#(at[^"]*)"', html)
        assert links, path
        assert [Structure(html).ids.count(one) for one in links] == [1] * len(links), path


def test_a_value_that_is_nested_too_deeply_to_be_sent_is_told_at_its_field(visitor: Browser) -> None:
    data_set = visitor.served.train("tennis")
    fields = {"model": "m", "dataset": data_set, "preset": "cart", "params.max_depth": "[" * 300 + "]" * 300}
    assert "must be a whole number" in faults_of(visitor.refused("/train", **fields), "params.max_depth")
    assert visitor.send("/train/code", fields).status_code == 200


def test_a_fault_of_a_part_that_has_a_field_leads_to_the_field(visitor: Browser) -> None:
    data_set = visitor.served.train("tennis")
    fields = {"model": "m", "dataset": data_set, "preset": "cart", "holdout": "share", "holdout_fraction": "5"}
    assert Structure(visitor.refused("/train", **fields)).ids.count("at-holdout-fraction") == 1


def test_a_data_set_to_hold_out_is_used_or_refused(visitor: Browser) -> None:
    """It is chosen in a menu of its own, below the menu for what is held out."""
    data_set, other = visitor.served.train("tennis"), visitor.served.upload(OTHER_DAYS, target="PlayTennis")["id"]
    fields = {"model": "m", "dataset": data_set, "preset": "cart", "holdout_dataset": other, "holdout_fraction": "0.3"}
    job = visitor.change("/train", **fields, holdout="dataset").split("/")[2]
    with read_session(visitor.served.service.sessions) as session:
        assert job_queue.find_job(session, job).holdout_data_set_id == other
    for held_out in ("", "share"):
        for path in ("/train", "/models/tennis/versions/1/prune"):
            html = visitor.refused(path, **fields, holdout=held_out)
            assert "is used only if another data set is held out" in faults_of(html, "holdout_dataset")


def test_a_refused_promotion_on_the_first_page_keeps_what_was_typed(visitor: Browser) -> None:
    visitor.served.train("tennis")
    action = re.search(r'action="(/ui/models/tennis/aliases[^"]*)"', visitor.get("/models/tennis"))
    assert action
    html = visitor.refused(action[1].removeprefix("/ui"), alias="1", version="1")
    assert Structure(html).values["alias"] == "1"
