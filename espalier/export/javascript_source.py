"""Write a model as one JavaScript module without dependencies."""

import json
import math
from collections.abc import Mapping
from string import Template
from typing import Any

from espalier.data.labels import MAX_INTEGER, Label
from espalier.data.schema import Feature, FeatureKind
from espalier.export.obstacles import number_obstacle
from espalier.export.program import Exported, Program
from espalier.export.tables import bracketed, class_texts, imputed_values, known_codes, listed_numbers, source_tables
from espalier.model.model import Model

TEMPLATE = Template("""\
$comment
const NAMES = $names;
// For each attribute, the code of each category; null for an attribute of numbers.
const CODES = $codes;
const MISSING_TEXTS = new Set($missing_texts);
const MISSING_NUMBERS = new Set($missing_numbers);
// For each attribute, whether it is a date, which is not compared with MISSING_NUMBERS.
const DATES = $dates;
const IMPUTED = $imputed;
const LABELS = $labels;
const TEXTS = $texts;
const SETS = $sets;
const LIMIT = 1e150;
const CUT = 1, CATEGORY = 2, DIVIDE = 3;
$tables

// Returns the answer to a row, an object of attribute names and values; null, undefined and NaN are missing.
// Classification: {label, leaf, probability: {class: share}}. Regression: {value, leaf}.
export function predict(row) {
  const values = NAMES.map((name, at) => encoded(name, Object.hasOwn(row, name) ? row[name] : null, at));
  const pending = [[0, 1]], reached = [];
  let divided = false;
  while (pending.length) {
    let [step, weight] = pending.pop();
    while (KIND[step] === CUT || KIND[step] === CATEGORY) {
      const value = values[FEATURE[step]];
      if (Number.isNaN(value)) step = ABSENT[step];
      else step = TARGET[FIRST[step] + (KIND[step] === CUT ? Number(value > THRESHOLD[step]) : value)];
    }
    if (KIND[step] === DIVIDE) {
      divided = true;
      for (let at = FIRST[step]; at < FIRST[step + 1]; at++) pending.push([TARGET[at], weight * SHARE[at]]);
    } else {
      reached.push([ANSWER[step], weight]);
    }
  }
  let leaf = 0, heaviest = -1;
  for (const [at, weight] of reached) {
    if (weight > heaviest || (weight === heaviest && at < leaf)) [leaf, heaviest] = [at, weight];
  }
  if (!LABELS.length) {
    const value = divided ? exactSum(reached.map(([at, weight]) => weight * TABLE[at])) : number(leaf, values);
    return { value, leaf: LEAF[leaf] };
  }
  const width = LABELS.length;
  let shares = TABLE.slice(leaf * width, (leaf + 1) * width), code = CODE[leaf];
  if (divided) {
    shares = shares.map((_, each) => exactSum(reached.map(([at, weight]) => weight * TABLE[at * width + each])));
    code = 0;
    shares.forEach((share, each) => { if (share > shares[code]) code = each; });
  }
  return {
    label: LABELS[code], leaf: LEAF[leaf], probability: Object.fromEntries(TEXTS.map((text, at) => [text, shares[at]])),
  };
}

function encoded(name, cell, at) {
  if (cell === null || cell === undefined || Number.isNaN(cell)) return IMPUTED[at];
  if (CODES[at] !== null) {
    const code = CODES[at].get(cell);
    return code === undefined ? IMPUTED[at] : code;
  }
  if (MISSING_TEXTS.has(cell)) return IMPUTED[at];
  if (typeof cell !== "number") throw new TypeError(name + ": must be a number, or null for missing");
  return MISSING_NUMBERS.has(cell) && !DATES[at] ? IMPUTED[at] : cell;
}

function number(leaf, values) {
  let value = TABLE[leaf];
  if (TERM.length) {
    for (let at = TERM[leaf]; at < TERM[leaf + 1]; at++) {
      const cell = values[TERM_FEATURE[at]];
      const column = TERM_SET[at] < 0 ? limited(cell) : Number(SETS[TERM_SET[at]].has(cell));
      value += COEFFICIENT[at] * column;
    }
    value = limited(value);
  }
  return value;
}

function limited(value) {
  return Math.min(Math.max(value, -LIMIT), LIMIT);
}

// The correctly rounded sum (Shewchuk 1997): parts that do not overlap, the smallest first.
function exactSum(items) {
  let parts = [];
  for (let item of items) {
    const kept = [];
    for (let part of parts) {
      if (Math.abs(item) < Math.abs(part)) [item, part] = [part, item];
      const sum = item + part, rest = part - (sum - item);
      if (rest !== 0) kept.push(rest);
      item = sum;
    }
    parts = [...kept, item];
  }
  let total = 0, rest = 0;
  while (parts.length && rest === 0) {
    const part = parts.pop(), sum = total + part;
    rest = part - (sum - total);
    total = sum;
  }
  // If the rest is half a unit in the last place, the sign of the next part decides the rounding.
  const next = parts.length ? parts[parts.length - 1] : 0;
  if ((rest < 0 && next < 0) || (rest > 0 && next > 0)) {
    const rounded = total + 2 * rest;
    if (rounded - total === 2 * rest) total = rounded;
  }
  return total;
}
""")


def javascript_obstacle(model: Model, _program: Program) -> str | None:
    """Return why a model cannot be expressed exactly; None if it can."""
    return number_obstacle(model, "JavaScript")


def javascript_source(given: Exported) -> str:
    """Return an ECMAScript module that exports ``predict(row)``."""
    tables, schema = source_tables(given.program), given.model.schema
    lists: dict[str, list[Any]] = {**tables.whole, **tables.real}
    return TEMPLATE.substitute(
        comment="\n".join(f"// {note}" for note in given.notes),
        names=bracketed([_literal(feature.name) for feature in schema.attributes]),
        codes=bracketed(list(map(_map, schema.attributes, known_codes(given.model)))),
        missing_texts=json.dumps(sorted(schema.missing_values)),
        missing_numbers=json.dumps(listed_numbers(given.model)),
        dates=bracketed([_literal(feature.kind is FeatureKind.DATETIME) for feature in schema.attributes]),
        imputed=bracketed([_literal(value) for value in imputed_values(given.model)]),
        labels=bracketed([_literal(label) for label in schema.classes]),
        texts=bracketed([_literal(text) for text in class_texts(given.model)]),
        sets=bracketed([f"new Set({each})" for each in tables.sets]),
        tables="\n".join(f"const {name} = {bracketed(list(map(_literal, items)))};" for name, items in lists.items()),
    )


def _map(feature: Feature, codes: Mapping[tuple[str, Label], int]) -> str:
    if not feature.coded:
        return "null"
    entries = {
        (kind == "bool", label): code
        for (kind, label), code in codes.items()
        if not isinstance(label, int) or abs(label) <= MAX_INTEGER  # JavaScript rounds larger integers
    }
    return f"new Map([{', '.join(f'[{_literal(label)}, {code}]' for (_, label), code in entries.items())}])"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return json.dumps(value)
