"""Size and server time of the web pages on models that are hard to show."""

import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import flask.testing
import numpy as np
import pyarrow as pa

import espalier
from benchmarks.measuring import print_table
from benchmarks.run import Run
from service.api.context import EXTENSION
from service.app import create_app
from service.database.engine import transaction
from service.database.migrate import migrate
from service.repositories import datasets, models
from service.settings import Settings

N_ROWS: Final = 150_000  # of noise: the full-grown tree has 100,000 nodes
N_CATEGORIES: Final = 2_000
REPETITIONS: Final = 5
MAX_KILOBYTES: Final = 500
MAX_MILLISECONDS: Final = 300
HOSTILE: Final = "<script>alert(1)</script>\"'&amp; 🌳 " + "long name " * 16

OF_VERSION: Final = ("", "?node={node}", "/tree?node={node}", "/rules", "/figures", "/rows?node=1", "/prune")


@dataclass(frozen=True, slots=True)
class Page:
    """Size of a page and median time of the server."""

    name: str
    kilobytes: float
    milliseconds: float
    processor: float  # milliseconds of processor time


def run(run: Run) -> bool:
    """Print size and time of every page; return False if one is too large or too slow."""
    settings = Settings(database_url=f"sqlite:///{run.folder}/pages.db", metrics="off")
    migrate(settings)
    app = create_app(settings)
    client = app.test_client()
    pages = []
    for name, dataset, model in _models(run):
        with transaction(app.extensions[EXTENSION].sessions) as session:
            row = datasets.add_data_set(session, name=HOSTILE[:190], new=datasets.new_data_set(dataset))
            new = models.NewVersion(
                name, espalier.to_json(model), "cart", espalier.summary(model), 0.0, data_set_id=row.id
            )
            models.add_version(session, new)
        app.extensions[EXTENSION].versions.invalidate()
        pages += list(_pages(client, name, row.id, model))
    lines = [
        [page.name, f"{page.kilobytes:,.1f}", f"{page.milliseconds:,.0f}", f"{page.processor:,.0f}", _verdict(page)]
        for page in pages
    ]
    title = f"Pages: at most {MAX_KILOBYTES} kB and {MAX_MILLISECONDS} ms, median of {REPETITIONS}"
    print_table(title, ("page", "kB", "ms", "ms of processor", ""), lines)
    return all(_verdict(page) == "" for page in pages)


def _models(run: Run) -> Iterator[tuple[str, espalier.Dataset, espalier.Model]]:
    random = np.random.Generator(np.random.PCG64(1))
    n_rows = run.rows(N_ROWS)
    columns = {f"x{column}": random.random(n_rows) for column in range(5)}
    noise = _dataset({**columns, "y": np.where(random.random(n_rows) < 0.5, "a", "b")})
    yield "large-tree", noise, espalier.train(noise, "cart")
    codes = random.integers(0, N_CATEGORIES, 20_000)
    names = np.array([f"{HOSTILE[:190]}{code}" for code in range(N_CATEGORIES)])
    hostile = {HOSTILE: names[codes], f"{HOSTILE}2": names[codes % 7], "y": names[(codes % 97) % 5]}
    table = _dataset(hostile)
    yield "categories", table, espalier.train(table, "id3")
    yield "categories-subset", table, espalier.train(table, "cart")
    slope = {name: values[:10_000] for name, values in columns.items()}
    numbers = _dataset({**slope, "y": slope["x0"] * 3 + slope["x1"] ** 2 + random.random(len(slope["x0"]))})
    yield "model-tree", numbers, espalier.train(numbers, "m5")
    small = noise.take(np.arange(3_000))
    yield "rule-list", small, espalier.extract_rules(espalier.train(small, "cart"))


def _dataset(columns: dict[str, Any]) -> espalier.Dataset:
    return espalier.dataset_from_arrow(pa.table(columns), target="y")


def _pages(client: flask.testing.FlaskClient, name: str, data_set: str, model: espalier.Model) -> Iterator[Page]:
    token = re.findall(r'name="csrf" value="(\w+)"', client.get("/ui/train").text)[0]
    is_tree = not isinstance(model.body, espalier.RuleList)
    node = int(np.argmax(model.tree.depths)) if is_tree else 0
    version = f"/ui/models/{name}/versions/1"
    paths = [version + path.format(node=node) for path in OF_VERSION if is_tree or "node" not in path]
    paths += [f"{version}/prune/preview?step=30"] if is_tree else []
    paths += [f"/ui/datasets/{data_set}", f"/ui/datasets/{data_set}/profile", f"/ui/models/{name}/try"]
    paths += [f"/ui/models/{name}", f"/ui/models/{name}/consultation", "/ui/", "/ui/train"]
    paths += [f"/ui/compare?left={name}/1&right={name}/1"]
    for path in paths:
        yield _fetched(client, path)
    answer = client.post(f"/ui/models/{name}/try", data={"csrf": token, "v-0": "0.5"}).text
    yield _fetched(client, f"/ui/models/{name}/try", {"csrf": token, "v-0": "0.5"})
    for decision in re.findall(r'"(/ui/decisions/[0-9a-f-]+)"', answer)[:1]:
        yield _fetched(client, decision)
        if model.config.leaf == "constant":
            yield _fetched(client, f"{decision}/counterfactuals")


def _fetched(client: flask.testing.FlaskClient, path: str, form: dict[str, str] | None = None) -> Page:
    times, processor, size = [], [], 0
    for _ in range(REPETITIONS + 1):  # the first one loads the model
        start, start_processor = time.perf_counter(), time.process_time()
        with client.open(path, method="POST" if form else "GET", data=form) as response:
            size = len(response.get_data())
            status = response.status_code
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
    shown = re.sub("[0-9a-f]{8}-[0-9a-f-]{27}", "…", path.removeprefix("/ui"))
    name = f"{'POST ' if form else ''}{shown}{'' if status == 200 else f' ({status})'}"
    return Page(name, size / 1000, statistics.median(times[1:]) * 1000, statistics.median(processor[1:]) * 1000)


def _verdict(page: Page) -> str:
    too_large = ["too large"] if page.kilobytes > MAX_KILOBYTES else []
    return ", ".join([*too_large, *(["too slow"] if page.milliseconds > MAX_MILLISECONDS else [])])
