"""Record the answers of Espalier, and compare two records, to show that a change of the code changes no answer.

``python tools/oracle.py record FOLDER [--only core|http]`` records the core and the service. The record of the core
has hashes of documents, traces, texts and explanations, for the reference data under every preset and pruning. A record
of the service has the OpenAPI document and the answers to a fixed series of requests (`tell`). It is made on SQLite; if
``ESPALIER_TEST_POSTGRES_URL`` names a server, another is made on PostgreSQL. Before recording, set PYTHONPATH to the
code to record. ``compare OLD NEW`` prints every entry that differs, and every file that only one record has. It exits
with 1 if there is one.
"""

import argparse
import csv
import gzip
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy

import espalier

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path(os.environ.get("ESPALIER_REFERENCE", ROOT.parent / "shared" / "reference"))
N_EXPLAINED = 2000
LARGE = 10_000  # rows
PRUNINGS: dict[str, dict[str, Any]] = {
    "reduced_error": {},
    "reduced_error greedy": {"order": "greedy", "ties": "keep"},
    "reduced_error initial backfit": {"compare": "initial", "backfit": True},
    "pessimistic": {},
    "pessimistic c45": {"confidence": 0.1, "quantile": "c45", "raising": True},
    "pessimistic exact": {"confidence": 0.4, "quantile": "exact", "raising": True},
    "cost_complexity validation": {"select": "validation"},
    "cost_complexity cv": {"select": "cv", "rule": "one_se", "risk": "error"},
    "cost_complexity alpha": {"alpha": 0.01},
    "rules validation": {"estimate": "validation"},
    "rules pessimistic": {"estimate": "pessimistic"},
    "model_tree": {},
}
VARIATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    **{preset: (preset, {}) for preset in espalier.PRESETS},
    "c45 full": ("c45", {"pruning": None, "collapse": False}),
    "cart surrogate": ("cart", {"missing": "surrogate", "min_weight_leaf": 7, "min_weight_split": 20}),
    "cart fractional": ("cart", {"missing": "fractional"}),
    "cart majority one_vs_rest": ("cart", {"missing": "majority", "nominal": "one_vs_rest"}),
    "cart best first": ("cart", {"max_leaf_nodes": 12}),
    "cart entropy": ("cart", {"criterion": "information_gain", "max_depth": 4}),
    "cart absolute": ("cart", {"criterion": "absolute_error"}),
    "cart poisson": ("cart", {"criterion": "poisson"}),
    "j48 balanced": ("j48", {"class_weight": "balanced"}),
    "m5 sdr": ("m5", {"criterion": "sdr"}),
    "m5 unpruned": ("m5", {"pruning": None}),
}


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description="Record what Espalier answers, and compare two records.")
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("folder", type=Path)
    record.add_argument("--only", choices=("core", "http"))
    compare = commands.add_parser("compare")
    compare.add_argument("old", type=Path)
    compare.add_argument("new", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return compare_records(arguments.old, arguments.new)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.only != "http":
        write(arguments.folder / "core.json", dict(core_entries()))
    if arguments.only != "core":
        write(arguments.folder / "sqlite.json", http_story("sqlite"))
        if "ESPALIER_TEST_POSTGRES_URL" in os.environ:
            write(arguments.folder / "postgresql.json", http_story("postgresql"))
    return 0


def write(path: Path, entries: dict[str, Any]) -> None:
    """Write entries, one per line."""
    lines = [f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in entries.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path}: {len(entries)} entries")


def compare_records(old: Path, new: Path) -> int:
    """Print the entries that differ, and the files that only one record has; return 1 if there is one."""
    n_different = 0
    for file in sorted({path.name for folder in (old, new) for path in folder.glob("*.json")}):
        missing = [folder for folder in (old, new) if not (folder / file).exists()]
        if missing:
            print(f"{file}: missing in {missing[0]}")
            n_different += 1
            continue
        before, after = (json.loads((folder / file).read_text()) for folder in (old, new))
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        print(f"{file}: {len(before)} entries, {len(names)} differ")
        n_different += len(names)
        for name in names:
            print(f"  {name}\n    old {shortened(before.get(name))}\n    new {shortened(after.get(name))}")
    return int(n_different > 0)


def shortened(entry: Any) -> str:
    """Return an entry as text, cut after 1,000 characters."""
    text = json.dumps(entry, sort_keys=True)
    return text if len(text) <= 1000 else f"{text[:1000]} … ({len(text)} characters)"


# ---------------------------------------------------------------------------------------------------------- the core


def core_entries() -> Iterator[tuple[str, Any]]:
    """Yield the name of each result with its hash or its error, for each data set, training and pruning.

    On large data sets, only the presets are trained, and slow prunings are left out.
    """
    for path in sorted((REFERENCE / "data").glob("*.schema.json")):
        schema = json.loads(path.read_text())
        content = (path.parent / schema["file"]).read_bytes()
        if schema["file"].endswith(".gz"):
            content = gzip.decompress(content)
        data = espalier.dataset_from_csv(content, schema=schema)
        yield f"{schema['name']}: fingerprint", data.fingerprint
        rows = rows_as_text(content, missing=schema.get("missing_token", "?"))
        for name, (preset, fields) in VARIATIONS.items():
            if data.n_rows > LARGE and name not in espalier.PRESETS:
                continue
            yield from trained(f"{schema['name']} {name}", data, rows, preset, fields)
            print(schema["name"], name, flush=True)


def rows_as_text(content: bytes, *, missing: str) -> list[dict[str, Any]]:
    """Return rows as a client sends them: each cell is a number, a text, or None for a missing value."""

    def value(cell: str) -> Any:
        if cell in ("", missing):
            return None
        try:
            return float(cell)
        except ValueError:
            return cell

    lines = csv.DictReader(content.decode().splitlines())
    return [{name: value(cell) for name, cell in row.items()} for row in lines]


def trained(
    name: str, data: espalier.Dataset, rows: list[dict[str, Any]], preset: str, fields: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the entries of one training, and of each pruning of a tree trained with a holdout."""
    holdout = {"fraction": 0.3, "seed": 1, "stratified": False}
    try:
        model, trace = espalier.train_traced(data, preset, **fields)
        with_holdout = espalier.train(data, preset, **{**fields, "pruning": None}, holdout=holdout)
    except espalier.EspalierError as error:
        yield f"{name}: refused", str(error)
        return
    yield f"{name}: document", digest(espalier.to_document(model))
    yield f"{name}: trace", digest(trace)
    yield f"{name}: text", digest(espalier.to_text(model))
    yield f"{name}: svg", digest(espalier.to_svg(model, depth=3))
    yield f"{name}: explanations", explanations(model, rows[:300] if data.n_rows > LARGE else rows)
    yield f"{name}: rules", attempt(lambda: espalier.rules_to_dict(espalier.extract_rules(model)))
    yield f"{name}: table", attempt(lambda: table_answers(model, data))
    yield f"{name}: counterfactuals", attempt(lambda: [repr(espalier.counterfactuals(model, row)) for row in rows[:5]])
    yield f"{name}: document with holdout", digest(espalier.to_document(with_holdout))
    for pruning, params in PRUNINGS.items():
        method = pruning.split()[0]
        if data.n_rows > LARGE and (method == "rules" or "greedy" in pruning):
            continue  # takes minutes
        yield f"{name}: {pruning}", attempt(lambda m=method, p=params: pruned(with_holdout, data, m, p, rows))


def pruned(
    model: espalier.Model, data: espalier.Dataset, method: str, params: dict[str, Any], rows: list[dict[str, Any]]
) -> list[Any]:
    """Return the document and the trace of a pruned model, and the hash of its explanations of the first 50 rows."""
    result = espalier.prune(model, method, dataset=data, **params)
    return [espalier.to_document(result.model), result.trace, explanations(result.model, rows[:50])]


def table_answers(model: espalier.Model, data: espalier.Dataset) -> list[Any]:
    """Return the predictions of a model for a whole data set, as lists."""
    answers = espalier.predict_table(model, data)
    arrays = answers.leaves, answers.missing, answers.unseen
    numbers = None if answers.numbers is None else answers.numbers.tolist()
    several = {row: prediction.to_dict() for row, prediction in answers.several.items()}
    return [*(array.tolist() for array in arrays), numbers, several]


def explanations(model: espalier.Model, rows: list[dict[str, Any]]) -> str:
    """Return the hash of the full explanations of up to 2,000 rows, or the error."""
    try:
        explained = espalier.explain(model, rows[:N_EXPLAINED], detail="full")
    except espalier.EspalierError as error:
        return f"refused: {error}"[:500]
    return digest([[each.to_dict(), each.rule] for each in explained])


def attempt(call: Any) -> str:
    """Return the hash of what a call returns, or its error."""
    try:
        return digest(call())
    except espalier.EspalierError as error:
        return f"refused: {error}"[:500]


def digest(value: Any) -> str:
    """Return the SHA-256 of the JSON text of a value, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


# -------------------------------------------------------------------------------------------------------------- HTTP

DRAWING = re.compile(r"espalier-[0-9a-f]{12}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
VOLATILE = {"seconds", "milliseconds", "latency_ms", "request_id", "cursor", "next", "duration", "queued_seconds"}


class Story:
    """Sends requests to a running service and collects its answers, without ids and times."""

    def __init__(self, address: str) -> None:
        """Talk to the service at `address`."""
        self.address = address
        self.answers: dict[str, Any] = {}

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json", name: str = "") -> Any:
        """Send a request, keep its answer under the request's name, and return it parsed."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, content, {"Content-Type": kind}, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                status, headers, text = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            status, headers, text = error.code, error.headers, error.read()
        kind_of_answer = headers.get("Content-Type", "")
        parsed = json.loads(text) if "json" in kind_of_answer and "ndjson" not in kind_of_answer else text.decode()
        label = name or f"{method} {UUID.sub('ID', path)}"
        while label in self.answers:
            label += " again"
        self.answers[label] = [status, kind_of_answer, plain(parsed)]
        return parsed

    def finished(self, job: dict[str, Any]) -> dict[str, Any]:
        """Wait until a job has ended; record and return it."""
        for _ in range(600):
            with urllib.request.urlopen(f"{self.address}/v1/jobs/{job['id']}?wait=5", timeout=60) as answer:  # noqa: S310
                finished: dict[str, Any] = json.load(answer)
            if finished["state"] not in ("queued", "running"):
                break
            time.sleep(0.05)
        self.ask("GET", f"/v1/jobs/{job['id']}")
        return finished


def plain(value: Any) -> Any:
    """Return an answer with ids, times and durations replaced by constants."""
    if isinstance(value, dict):
        return {name: "…" if name in VOLATILE else plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    if isinstance(value, str):
        return DRAWING.sub("espalier-ID", TIME.sub("TIME", UUID.sub("ID", value)))
    return value


def http_story(database: str) -> dict[str, Any]:
    """Run the service on a new database, sqlite or postgresql; return its answers to the requests of `tell`."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/espalier.db" if database == "sqlite" else make_database()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        environment = {**os.environ, "ESPALIER_DATABASE_URL": url}
        command = [sys.executable, "-m", "service.cli", "up", "--port", str(port)]
        with (Path(folder) / "printed.txt").open("w") as printed:
            process = subprocess.Popen(command, env=environment, stdout=printed, stderr=subprocess.STDOUT)  # noqa: S603
        story = Story(f"http://127.0.0.1:{port}")
        try:
            wait_until_ready(story.address, process)
            tell(story)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            if database == "postgresql":
                drop_database(url)
        return story.answers


def make_database() -> str:
    """Create a database on the server of the tests, and return its URL."""
    beside = sqlalchemy.make_url(os.environ["ESPALIER_TEST_POSTGRES_URL"])
    name = f"oracle_{os.getpid()}"
    with sqlalchemy.create_engine(beside, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    return beside.set(database=name).render_as_string(hide_password=False)


def drop_database(url: str) -> None:
    """Drop a database that `make_database` has created."""
    beside = sqlalchemy.make_url(os.environ["ESPALIER_TEST_POSTGRES_URL"])
    with sqlalchemy.create_engine(beside, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sqlalchemy.text(f"DROP DATABASE {sqlalchemy.make_url(url).database} WITH (FORCE)"))


def wait_until_ready(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the service answers that it is ready."""
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("the service ended before it was ready")
        try:
            with urllib.request.urlopen(address + "/readyz", timeout=5):  # noqa: S310
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the service did not become ready")


def tell(story: Story) -> None:  # noqa: PLR0915 - a story is long
    """Send the requests of a user, right and wrong ones: on data sets, jobs, models, predictions and decisions."""
    ask = story.ask
    ask("GET", "/openapi.json")
    drugs = (REFERENCE / "data" / "drug200.csv").read_bytes()
    data = ask("POST", "/v1/datasets?name=drugs&target=Drug", drugs, "text/csv")["id"]
    cpu = ask("POST", "/v1/datasets?name=cpu&target=class", (REFERENCE / "data" / "cpu.csv").read_bytes(), "text/csv")
    labor = ask(
        "POST", "/v1/datasets?name=labor&target=class", (REFERENCE / "data" / "labor.csv").read_bytes(), "text/csv"
    )["id"]
    rows_form = {"rows": [{"a": 1, "b": "x", "y": "p"}, {"a": None, "b": "z", "y": "q"}], "target": "y"}
    ask("POST", "/v1/datasets?name=rows&target=y", {"rows": rows_form["rows"]}, name="rows as JSON")
    ask("POST", "/v1/datasets?name=bad&target=y", b"a,y\n1,2,3\n", "text/csv", name="ragged CSV")
    ask("POST", "/v1/datasets?name=bad&target=none", drugs, "text/csv", name="no such target")
    for path in ("", "/rows?limit=3", "/profile"):
        ask("GET", f"/v1/datasets/{data}{path}")
    ask("GET", "/v1/datasets?limit=2")
    for preset in ("c45", "cart"):
        body = {"model": f"drug-{preset}", "dataset": data, "preset": preset, "holdout": {"fraction": 0.3, "seed": 1}}
        story.finished(ask("POST", "/v1/training-jobs", body, name=f"train drug-{preset}"))
    story.finished(ask("POST", "/v1/training-jobs", {"model": "labor", "dataset": labor, "preset": "j48"}))
    cpu_body = {"model": "cpu", "dataset": cpu.get("id"), "preset": "m5"}
    if "id" in cpu:
        story.finished(ask("POST", "/v1/training-jobs", cpu_body, name="train cpu"))
    wrong = {"model": "x y", "dataset": data, "preset": "c4", "params": {"max_depth": -1, "nothing": 1}}
    ask("POST", "/v1/training-jobs", wrong, name="a wrong training job")
    prune = {"model": "drug-cart", "method": "reduced_error"}
    story.finished(ask("POST", "/v1/pruning-jobs", prune, name="prune"))
    evaluation = {"dataset": data, "candidates": [{"preset": "c45"}, {"preset": "cart"}], "folds": 3}
    job = story.finished(ask("POST", "/v1/evaluation-jobs", evaluation, name="compare"))
    ask("GET", f"/v1/jobs/{job['id']}/result")
    scoring = {"model": "drug-c45", "dataset": data, "explain": "path"}
    job = story.finished(ask("POST", "/v1/prediction-jobs", scoring, name="predict a data set"))
    for form in ("json", "csv", "ndjson"):
        ask("GET", f"/v1/jobs/{job['id']}/result?format={form}")
    for model in ("drug-c45", "drug-cart", "labor"):
        ask("GET", f"/v1/models/{model}/versions/1")
        for form in ("json", "text", "mermaid", "dot", "svg"):
            ask("GET", f"/v1/models/{model}/versions/1/tree?format={form}")
        for path in ("rules", "rules?format=text", "document", "schema"):
            ask("GET", f"/v1/models/{model}/versions/1/{path}")
    ask("GET", "/v1/models/drug-cart/versions/2/pruning")
    ask("GET", "/v1/models")
    patient = {"Age": 47, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 13.1}
    rows = [patient, {**patient, "Na_to_K": None}, {**patient, "BP": "UNSEEN"}, {"Age": 20}]
    for explain in ("none", "path", "full"):
        answer = ask(
            "POST", "/v1/models/drug-c45/predict", {"rows": rows, "explain": explain, "subject": "s"}, name=explain
        )
    decision = answer["predictions"][0]["decision_id"]
    many = [{**patient, "Age": 20 + n % 50, "Na_to_K": 8 + n / 20} for n in range(400)]
    ask("POST", "/v1/models/drug-cart/predict", {"rows": many, "explain": "none"}, name="many rows")
    columns = {name: [row[name] for row in many] for name in patient}
    ask("POST", "/v1/models/drug-cart/versions/1/predict", {"columns": columns, "explain": "none"}, name="columns")
    for body in ({"rows": []}, {"rows": [{"Age": "old"}, {"Nothing": 1}]}, {"rows": 1, "explain": "all"}, [], None):
        ask("POST", "/v1/models/drug-cart/predict", body, name=f"wrong: {json.dumps(body)}")
    bad = {"rows": [patient, {"Age": "old"}], "on_error": "skip", "missing": "majority"}
    ask("POST", "/v1/models/drug-cart/predict", bad, name="skip")
    ask("POST", "/v1/models/drug-c45/predict?alias=none", {"rows": [patient]}, name="no such alias")
    stream = drugs.split(b"\n")[:20]
    without_label = b"\n".join(line.rsplit(b",", 1)[0] for line in stream if line)
    ask("POST", "/v1/models/drug-c45/predict?explain=path", without_label, "text/csv", name="CSV stream")
    lines = b"\n".join(json.dumps(row).encode() for row in rows)
    ask("POST", "/v1/models/drug-c45/predict", lines, "application/x-ndjson", name="NDJSON stream")
    for path in ("", "/explanation", "/explanation?format=text", "/explanation?format=svg"):
        ask("GET", f"/v1/decisions/{decision}{path}")
    ask("POST", f"/v1/decisions/{decision}/counterfactuals", {"immutable": ["Age"]})
    ask("POST", "/v1/models/drug-c45/consultations", {"known": {}}, name="consultation")
    ask("POST", f"/v1/decisions/{decision}/outcome", {"label": "drugC"})
    ask("GET", "/v1/models/drug-c45/versions/1/accuracy")
    ask("GET", "/v1/decisions?subject=s&limit=5")
    ask("PUT", "/v1/models/drug-cart/aliases/production", {"version": 1})
    ask("PUT", "/v1/models/drug-cart/aliases/production", {"version": 2})
    ask("POST", "/v1/models/drug-cart/aliases/production/rollback", {})
    ask("GET", "/v1/models/drug-cart/aliases/production/history")
    ask("DELETE", "/v1/decisions?subject=s")
    ask("GET", f"/v1/decisions/{decision}/explanation", name="explanation of an erased decision")
    for path in ("/v2", "/v2/health/ready", "/v2/models/drug-c45", "/v2/models/none"):
        ask("GET", path)
    ask("POST", "/v2/repository/index", {})
    tensors = [
        {"name": "Age", "datatype": "FP64", "shape": [1], "data": [47]},
        {"name": "Na_to_K", "datatype": "FP64", "shape": [1], "data": [13.1]},
        *({"name": n, "datatype": "BYTES", "shape": [1], "data": [patient[n]]} for n in ("Sex", "BP", "Cholesterol")),
    ]
    ask("POST", "/v2/models/drug-c45/infer", {"inputs": tensors}, name="infer")
    ask("POST", "/v2/models/drug-c45/infer", {"inputs": tensors[:1]}, name="infer from one tensor")
    ask("DELETE", "/v1/models/drug-c45")
    ask("GET", "/v1/nothing")


if __name__ == "__main__":
    raise SystemExit(main())
