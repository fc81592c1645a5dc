"""The core's public face, its errors, its examples and its size."""

import ast
import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import types

import pytest

import espalier
from espalier import errors
from tests.factories import ROOT

PACKAGES = ("espalier", "service", "migrations")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MODULES = sorted(
    info.name for info in pkgutil.walk_packages(espalier.__path__, "espalier.") if ".kernels" not in info.name
)
PUBLIC = {name: getattr(espalier, name) for name in espalier.__all__}
CALLABLE = {name: value for name, value in PUBLIC.items() if inspect.isclass(value) or inspect.isfunction(value)}
LONGEST = 500

LONGER = {
    "migrations/versions/": "a migration is written once and is as long as its tables",
}
"""Files and folders that may be longer than `LONGEST` lines, and why."""


def relative(path):
    return path.relative_to(ROOT).as_posix()


# The public face


def stub():
    """The names that `espalier/__init__.pyi` imports, in its order."""
    tree = ast.parse((ROOT / "espalier" / "__init__.pyi").read_text(encoding="utf-8"))
    return [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]


def test_each_public_name_is_written_once():
    assert len(set(stub())) == len(stub())
    assert set(espalier.__all__) == set(stub())


def test_no_public_name_is_that_of_a_module():
    """Importing the module would put it in the place of the name."""
    assert {name.removeprefix("espalier.") for name in MODULES} & set(espalier.__all__) == set()


def test_a_name_that_is_not_there_is_an_attribute_error_and_the_others_are_listed():
    with pytest.raises(AttributeError, match="No espalier attribute forest"):
        _ = espalier.forest
    assert set(espalier.__all__) <= set(dir(espalier))


@pytest.mark.parametrize("name", sorted(CALLABLE))
def test_every_public_name_says_in_a_sentence_what_it_is(name):
    text = inspect.getdoc(CALLABLE[name])
    assert text, f"{name} has no docstring"
    assert not text.startswith(f"{name}("), f"{name} has only the docstring that dataclasses make"
    assert re.search(r"[.:]$", text.split("\n\n")[0]), f"the first sentence of {name} does not end"


def test_every_public_method_is_documented_too():
    silent = [
        f"{name}.{method}"
        for name, kind in CALLABLE.items()
        if inspect.isclass(kind) and kind.__module__.startswith("espalier")
        for method, value in vars(kind).items()
        if not method.startswith("_")
        and isinstance(value, types.FunctionType | property | classmethod | staticmethod)
        and not inspect.getdoc(getattr(kind, method))
    ]
    assert silent == []


def test_every_public_dataclass_is_frozen():
    classes = {name: value for name, value in CALLABLE.items() if dataclasses.is_dataclass(value)}
    assert classes
    assert [name for name, value in classes.items() if not value.__dataclass_params__.frozen] == []


@pytest.mark.parametrize("name", sorted(name for name, value in CALLABLE.items() if inspect.isfunction(value)))
def test_public_functions_take_at_most_three_arguments_by_place_and_no_switch(name):
    parameters = inspect.signature(CALLABLE[name]).parameters.values()
    by_place = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert len(by_place) <= 3
    assert [each.name for each in by_place if isinstance(each.default, bool)] == []


# Errors


def error_classes():
    return {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }


def test_every_error_stands_in_the_drawing_at_the_top_below_its_base():
    drawing = [line for line in errors.__doc__.splitlines() if re.search(r"\b[A-Z][a-z]+[A-Z]\w+|Cancelled", line)]
    above: list[tuple[int, str]] = []
    bases = {}
    for line in drawing:
        found = re.search(r"[A-Z]\w+", line)
        column, name = found.start(), found.group()
        above = [(at, other) for at, other in above if at < column]
        bases[name] = above[-1][1] if above else "Exception"
        above.append((column, name))
    assert set(bases) == error_classes()
    assert bases == {name: getattr(errors, name).__bases__[0].__name__ for name in bases}


def test_every_error_is_public():
    assert error_classes() <= set(espalier.__all__)


def test_nothing_in_the_core_raises_a_bare_exception():
    raised = {
        f"{relative(path)}:{node.lineno}"
        for path in FILES
        if path.is_relative_to(ROOT / "espalier")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and getattr(node.exc.func, "id", "") in ("Exception", "RuntimeError", "BaseException")
    }
    assert raised == set()


# Examples


@pytest.mark.parametrize("name", ["espalier", *MODULES])
def test_the_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    # The examples name errors with their module, as a session prints them.
    failures, _ = doctest.testmod(module, verbose=False)
    assert failures == 0


# Size and shape


def test_no_file_is_longer_than_five_hundred_lines_without_a_reason():
    n_lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: n for path, n in n_lines.items() if n > LONGEST and not path.startswith(tuple(LONGER))} == {}


def test_every_place_of_long_files_is_still_there():
    for place in LONGER:
        assert any(relative(path).startswith(place) for path in FILES)


def test_no_file_has_a_name_that_says_nothing():
    nothing = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
    names = map(relative, FILES)
    assert [name for name in names if nothing & set(name.removesuffix(".py").replace("/", "_").split("_"))] == []


# What importing costs


def modules_after(code):
    """Names of the modules that are loaded once `code` has run in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_answering_and_explaining_load_no_reader_and_no_learning_library():
    code = """
from espalier import explain, from_json, predict, render_explanation, to_mermaid, to_text
import pathlib
model = from_json(pathlib.Path("tests/golden/tennis_id3.v1.json").read_bytes())
row = {"Outlook": "Sunny", "Temperature": "Hot", "Humidity": "High", "Wind": "Weak"}
assert predict(model, [row])[0].label == "No"
render_explanation(explain(model, [row], detail="full")[0])
to_text(model), to_mermaid(model)
"""
    assert not modules_after(code) & {"cython", "pyarrow", "pandas", "sklearn", "polars", "scipy"}


def test_importing_the_core_loads_nothing_of_the_service():
    loaded = modules_after("import espalier")
    assert not loaded & {"service", "flask", "sqlalchemy", "marshmallow", "pyarrow", "sklearn"}


def test_who_only_predicts_loads_nothing_that_trains_draws_or_explains():
    code = """
from espalier import from_json, predict
import pathlib
model = from_json(pathlib.Path("tests/golden/tennis_id3.v1.json").read_bytes())
assert predict(model, [{"Outlook": "Overcast"}])[0].label == "Yes"
"""
    loaded = modules_after(code)
    assert "espalier.prediction.predict" in loaded
    needless = (
        "training growing pruning model_selection estimators explanation plotting evaluation data.readers data.spill"
    )
    assert not loaded & {f"espalier.{package}" for package in needless.split()}
    assert not loaded & {"pyarrow", "pandas", "hashlib", "concurrent.futures"}


def test_all_can_be_loaded_ahead_without_readers():
    loaded = modules_after("import espalier\nespalier.load_all()")
    assert {"espalier.model_selection.compare", "espalier.plotting.svg", "espalier.data.readers.arrow"} <= loaded
    assert not loaded & {"pyarrow", "sklearn"}
