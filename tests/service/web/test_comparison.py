"""Compare two versions on a data set."""

import re

import numpy as np
import pytest

import espalier
from service.database.engine import transaction
from service.repositories import datasets
from service.web import comparison, training
from tests.core.counted_calls import n_calls
from tests.service.web.browser import Browser, text_of

N_ROWS, N_CLASSES = 400, 50


def test_the_answer_of_each_leaf_is_not_made_to_compare_labels(visitor: Browser) -> None:
    draw = np.random.default_rng(7)
    columns = {name: draw.random(N_ROWS) for name in "abc"}
    labels = [f"c{code}" for code in draw.integers(N_CLASSES, size=N_ROWS)]
    table = espalier.dataset_from_columns({**columns, "y": labels}, target="y")
    model = espalier.train(table, "cart")
    assert model.tree.n_leaves > N_ROWS / 2
    with transaction(visitor.served.service.sessions) as session:
        data_set = datasets.add_data_set(session, name="rows", new=datasets.new_data_set(table)).id
    visitor.served.keep("wide", model)
    pages = [f"/compare?left=wide/1&right=wide/1{query}" for query in ("", f"&dataset={data_set}")]
    assert "0 of 400 rows" in text_of(visitor.get(pages[1]))

    without_rows, with_rows = (n_calls(lambda page=page: visitor.get(page)) for page in pages)
    assert with_rows - without_rows < 15 * model.tree.n_leaves


def test_the_menus_show_what_is_compared(visitor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAX_LISTED", 1)
    monkeypatch.setattr(training, "MAX_LISTED", 1)
    first = visitor.served.train("tennis")
    for _ in range(2):
        visitor.served.train("tennis")
    html = visitor.get(f"/compare?left=tennis/1&right=tennis/2&dataset={first}")
    chosen = re.findall(r'<option value="([^"]+)" selected', html)
    assert chosen == ["tennis/1", "tennis/2", first]
