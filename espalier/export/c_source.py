"""Write a model as one C99 file that needs only the standard library."""

import math
from collections.abc import Mapping
from string import Template

from espalier.data.labels import Label, label_text
from espalier.data.schema import FeatureKind
from espalier.export.program import Exported, Program
from espalier.export.tables import (
    class_texts,
    imputed_values,
    known_codes,
    listed_numbers,
    source_tables,
    starts,
    wrapped,
)
from espalier.model.model import Model

TEMPLATE = Template(r"""$comment
#include <math.h>
#include <stddef.h>
#include <string.h>

#define N_ATTRIBUTES $n_attributes
#define N_CLASSES $n_classes
#define N_LINEAR $n_linear
#define MAX_PENDING $max_pending
#define MAX_PARTS 64
#define LIMIT 1e150

/* One value of a row: a number (NAN: missing), or the text of a category (NULL: missing). */
typedef struct {
    double number;
    const char *text;
} espalier_value;

/* Number of the leaf or rule; and the class and the share of each class, or the value of a regression. */
typedef struct {
    const char *label;
    int code;
    int leaf;
    double probability[N_CLASSES > 0 ? N_CLASSES : 1];
    double value;
} espalier_answer;

/* The order of the values of a row. */
const char *const espalier_attributes[] = {$names};
/* The order of the probabilities. */
const char *const espalier_classes[] = {$labels};

enum { ANSWERED, CUT, CATEGORY, DIVIDE };
/* Whether each attribute has categories. Those of attribute i begin at CODE_TEXT[CODES_FIRST[i]]. */
static const int CODED[] = {$coded};
static const int CODES_FIRST[] = {$codes_first};
static const char *const CODE_TEXT[] = {$code_texts};
static const int CODE_OF[] = {$code_of};
static const double MISSING_NUMBERS[] = {$missing_numbers};
/* Whether each attribute is a date, which is not compared with MISSING_NUMBERS. */
static const int IS_DATE[] = {$dates};
static const double IMPUTED[] = {$imputed};
static const int SET_FIRST[] = {$set_first};
static const int SET_CODE[] = {$set_codes};
$tables

/* A sum as parts that do not overlap (Shewchuk 1997), so that it is rounded once. */
typedef struct {
    double part[MAX_PARTS];
    int n;
} exact_sum;

static void add(exact_sum *sum, double item) {
    int kept = 0;
    for (int at = 0; at < sum->n; at++) {
        double part = sum->part[at];
        double large = fabs(item) < fabs(part) ? part : item;
        double small = fabs(item) < fabs(part) ? item : part;
        double total = large + small;
        double rest = small - (total - large);
        if (rest != 0) sum->part[kept++] = rest;
        item = total;
    }
    sum->part[kept++] = item;
    sum->n = kept;
}

static double rounded(const exact_sum *sum) {
    double total = 0, rest = 0;
    int left = sum->n;
    while (left > 0 && rest == 0) {
        double part = sum->part[--left], whole = total + part;
        rest = part - (whole - total);
        total = whole;
    }
    if (left > 0 && ((rest < 0 && sum->part[left - 1] < 0) || (rest > 0 && sum->part[left - 1] > 0))) {
        double next = total + 2 * rest;
        if (next - total == 2 * rest) total = next;
    }
    return total;
}

static double limited(double value) { return value < -LIMIT ? -LIMIT : (value > LIMIT ? LIMIT : value); }

static double encoded(const espalier_value *cell, int attribute) {
    if (CODED[attribute]) {
        for (int at = CODES_FIRST[attribute]; cell->text != NULL && at < CODES_FIRST[attribute + 1]; at++)
            if (strcmp(cell->text, CODE_TEXT[at]) == 0) return CODE_OF[at];
        return IMPUTED[attribute];
    }
    for (int at = 0; at < $n_missing && !IS_DATE[attribute]; at++)
        if (cell->number == MISSING_NUMBERS[at]) return IMPUTED[attribute];
    return isnan(cell->number) ? IMPUTED[attribute] : cell->number;
}

static double linear(int leaf, const double *values) {
    double value = TABLE[leaf];
    for (int at = TERM[leaf]; at < TERM[leaf + 1]; at++) {
        double cell = values[TERM_FEATURE[at]], column = 0;
        if (TERM_SET[at] < 0) column = limited(cell);
        else
            for (int each = SET_FIRST[TERM_SET[at]]; each < SET_FIRST[TERM_SET[at] + 1]; each++)
                if (cell == SET_CODE[each]) column = 1;
        volatile double product = COEFFICIENT[at] * column; /* rounded before it is added */
        value += product;
    }
    return limited(value);
}

/* Writes the answer to a row of N_ATTRIBUTES values, in the order of espalier_attributes. */
void espalier_predict(const espalier_value *row, espalier_answer *answer) {
    double values[N_ATTRIBUTES > 0 ? N_ATTRIBUTES : 1];
    for (int at = 0; at < N_ATTRIBUTES; at++) values[at] = encoded(&row[at], at);
    int pending[MAX_PENDING + 1], n_pending = 1, leaf = -1, divided = 0;
    double weights[MAX_PENDING + 1], heaviest = -1;
    exact_sum sums[N_CLASSES > 0 ? N_CLASSES : 1];
    for (int each = 0; each < (N_CLASSES > 0 ? N_CLASSES : 1); each++) sums[each].n = 0;
    pending[0] = 0;
    weights[0] = 1;
    while (n_pending > 0) {
        int step = pending[--n_pending];
        double weight = weights[n_pending];
        while (KIND[step] == CUT || KIND[step] == CATEGORY) {
            double value = values[FEATURE[step]];
            if (isnan(value)) step = ABSENT[step];
            else step = TARGET[FIRST[step] + (KIND[step] == CUT ? value > THRESHOLD[step] : (int)value)];
        }
        if (KIND[step] == DIVIDE) {
            divided = 1;
            for (int at = FIRST[step]; at < FIRST[step + 1]; at++, n_pending++) {
                pending[n_pending] = TARGET[at];
                weights[n_pending] = weight * SHARE[at];
            }
            continue;
        }
        int at = ANSWER[step];
        if (weight > heaviest || (weight == heaviest && at < leaf)) {
            leaf = at;
            heaviest = weight;
        }
        for (int each = 0; divided && each < (N_CLASSES > 0 ? N_CLASSES : 1); each++)
            add(&sums[each], weight * TABLE[at * (N_CLASSES > 0 ? N_CLASSES : 1) + each]);
    }
    answer->leaf = LEAF[leaf];
    answer->label = NULL;
    answer->code = -1;
    answer->value = NAN;
    if (N_CLASSES == 0) {
        answer->value = divided ? rounded(&sums[0]) : (N_LINEAR ? linear(leaf, values) : TABLE[leaf]);
        return;
    }
    int code = 0;
    for (int each = 0; each < N_CLASSES; each++) {
        answer->probability[each] = divided ? rounded(&sums[each]) : TABLE[leaf * N_CLASSES + each];
        if (answer->probability[each] > answer->probability[code]) code = each;
    }
    answer->code = divided ? code : CODE[leaf];
    answer->label = espalier_classes[answer->code];
}
""")


def c_source(given: Exported) -> str:
    """Return a C99 file with ``espalier_predict``."""
    tables, attributes = source_tables(given.program), given.model.schema.attributes
    codes = [_by_text(each) for each in known_codes(given.model)]
    missing = listed_numbers(given.model)
    declared = [
        f"static const int {name}[] = {{{_list(list(map(str, items)))}}};" for name, items in tables.whole.items()
    ]
    declared += [f"static const double {name}[] = {{{_list(_numbers(items))}}};" for name, items in tables.real.items()]
    return TEMPLATE.substitute(
        comment="\n".join(f"/* {note} */" for note in given.notes),
        n_attributes=len(attributes),
        n_classes=len(given.model.schema.classes),
        n_linear=len(given.program.linear),
        n_missing=len(missing),
        max_pending=tables.max_pending,
        names=_list([_text(feature.name) for feature in attributes]),
        labels=_list([_text(text) for text in class_texts(given.model)]),
        coded=_list([str(int(feature.coded)) for feature in attributes]),
        codes_first=_list(list(map(str, starts(codes)))),
        code_texts=_list([_text(text) for each in codes for text in each]),
        code_of=_list([str(code) for each in codes for code in each.values()]),
        missing_numbers=_list(_numbers(missing)),
        dates=_list([str(int(feature.kind is FeatureKind.DATETIME)) for feature in attributes]),
        imputed=_list(_numbers(imputed_values(given.model))),
        set_first=_list(list(map(str, starts(tables.sets)))),
        set_codes=_list([str(code) for each in tables.sets for code in each]),
        tables="\n".join(declared),
    )


def c_obstacle(model: Model, _program: Program) -> str | None:
    """Return why C, which takes categories as text, cannot tell two categories apart; None if it can."""
    for feature in model.schema.attributes:
        texts = [label_text(label) for label in feature.categories]
        if len(set(texts)) < len(texts):
            return f"{feature.name!r} has two categories that are written alike, and C takes categories as text"
    return None


def _by_text(codes: Mapping[tuple[str, Label], int]) -> dict[str, int]:
    return {label: code for (_, label), code in codes.items() if isinstance(label, str)}


def _list(items: list[str]) -> str:
    # C has no empty arrays, so an unused 0 is written.
    return f"\n    {wrapped(items or ['0'])},\n"


def _numbers(values: list[float]) -> list[str]:
    return [repr(value) if math.isfinite(value) else _not_finite(value) for value in values]


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    return "INFINITY" if value > 0 else "-INFINITY"


def _text(text: str) -> str:
    """Return an ASCII string literal. Octal escapes have a fixed length. ``?`` is escaped: it may begin a trigraph."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{plain}"'
