"""Pictures of trees: their geometry, read from the file; what is in them for those who see and those who listen."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from espalier import Feature, FeatureKind, Schema, dataset_from_columns, to_svg, train
from espalier.plotting.text_width import text_width, wrap_text
from tests.core.hostile import HOSTILE, hostile
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Known, mixed_rows, plant, roots

TREE = Cut(0, 14.6155, (Ask(1, (0, 1, 0), (A, Known(2, (C, B)))), B))
NAMESPACE = "{http://www.w3.org/2000/svg}"

# Advance widths of the signs from space to tilde in DejaVu Sans 2.37, in thousandths of the size, and of its bold.
PLAIN = [
    *(318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, *[636] * 10, 337, 337),
    *(838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603),
    *(787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615),
    *(352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525),
    *(636, 337, 636, 838),
]
BOLD = [
    *(348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, *[696] * 10, 400, 400),
    *(838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733),
    *(850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678),
    *(435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582),
    *(712, 365, 712, 838),
]
SIGNS = {"≤": 838, "≥": 838, "±": 838, "×": 838, "·": 380, "…": 1000}


def test_a_half_percent_is_not_shown_as_none_and_the_rest_not_as_all():
    table = dataset_from_columns({"x": [0.0] * 200, "y": ["many"] * 199 + ["one"]}, target="y")
    picture = to_svg(train(table, "cart"))
    assert "over 99 % many, under 1 % one" in picture
    assert "100 %" not in picture


def drawn_width(text: str, size: float, *, bold: bool) -> float:
    """How wide a real font draws a text."""
    widths = BOLD if bold else PLAIN
    return sum(SIGNS.get(sign) or widths[ord(sign) - 32] for sign in text) * size / 1000


@dataclass(frozen=True)
class Area:
    """A rectangle on the picture; of a text, the room of its letters."""

    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other: "Area", slack: float = 0.06) -> bool:
        return (
            self.left <= other.left + slack
            and self.top <= other.top + slack
            and other.right <= self.right + slack
            and other.bottom <= self.bottom + slack
        )

    def meets(self, other: "Area") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class Picture:
    """An SVG, read: every coordinate from the corner of the whole."""

    def __init__(self, svg: str) -> None:
        self.root = ET.fromstring(svg)  # noqa: S314 - our own
        self.whole = Area(0, 0, *map(float, self.root.get("viewBox", "").split()[2:]))
        self.boxes: list[Area] = []
        self.texts: list[tuple[Area, str, Area | None]] = []
        self.lines: list[list[float]] = []
        self._read(self.root, 0.0, 0.0, None)

    def _read(self, element: ET.Element, x: float, y: float, box: Area | None) -> None:
        for child in element:
            tag, at = child.tag.removeprefix(NAMESPACE), self._translated(child, x, y)
            if tag == "svg":
                size = float(child.get("width", "")), float(child.get("height", ""))
                self.boxes.append(Area(*at, at[0] + size[0], at[1] + size[1]))
                self._read(child, *at, self.boxes[-1])
            elif tag == "g":
                self._read(child, *at, box)
            elif tag == "text":
                text, size = child.text or "", float(child.get("font-size", ""))
                right = at[0] + drawn_width(text, size, bold=child.get("font-weight") == "bold")
                # Letters reach from three quarters of their size above the line to a quarter below it.
                self.texts.append((Area(at[0], at[1] - 0.76 * size, right, at[1] + 0.24 * size), text, box))
            elif tag == "path" and "C" in child.get("d", ""):
                numbers = [float(number) for number in re.findall(r"-?[\d.]+", child.get("d", ""))]
                self.lines.append([numbers[0] + x, numbers[1] + y, numbers[-1] + x, numbers[-2] + y])

    def _translated(self, element: ET.Element, x: float, y: float) -> tuple[float, float]:
        found = re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
        if found:
            return x + float(found[1]), y + float(found[2])
        return x + float(element.get("x", 0)), y + float(element.get("y", 0))

    def elements(self, tag: str) -> Iterator[ET.Element]:
        return self.root.iter(NAMESPACE + tag)


def check(picture: Picture) -> None:
    """No two boxes, labels or captions touch; nothing is cut; every line joins the boxes that it is between."""
    for one, other in combinations(picture.boxes, 2):
        assert not one.meets(other)
    outside = [area for area, _, box in picture.texts if box is None]
    for one, other in combinations(outside, 2):
        assert not one.meets(other)
    for area in outside:
        assert picture.whole.holds(area)
        assert not any(area.meets(box) for box in picture.boxes)
    for area, text, box in picture.texts:
        assert box is None or box.holds(area), text
    for box in picture.boxes:
        assert picture.whole.holds(box)
    for start_x, start_y, end_x, end_y in picture.lines:
        assert any(abs(box.right - start_x) < 0.2 and box.top < start_y < box.bottom for box in picture.boxes)
        assert any(abs(box.left - end_x) < 0.2 and box.top < end_y < box.bottom for box in picture.boxes)


WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
NAMES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@st.composite
def named(select_nodes: st.DrawFn) -> Schema:
    """`MIXED` or `NUMBERS` with other names and categories."""
    schema = select_nodes(st.sampled_from([MIXED, NUMBERS]))
    names = select_nodes(st.lists(NAMES, min_size=5, max_size=5, unique=True))
    features = []
    for feature, name in zip(schema.features, names, strict=True):
        labels = feature.categories
        if labels and feature.kind is not FeatureKind.BOOLEAN:
            labels = tuple(select_nodes(st.lists(NAMES, min_size=len(labels), max_size=len(labels), unique=True)))
        features.append(Feature(name, feature.kind, feature.role, labels))
    return Schema(tuple(features))


@given(data=st.data(), schema=named())
def test_no_two_boxes_overlap_no_text_is_cut_and_all_is_inside(data, schema):
    base = MIXED if schema.classes else NUMBERS
    model = plant(schema, data.draw(roots(base)))
    depth = data.draw(st.sampled_from([None, 0, 1, 2]))
    row = data.draw(st.none() | mixed_rows().map(lambda row: {"length": row.get("length")}))
    path = None if row is None else {schema.features[0].name: row["length"]}
    check(Picture(to_svg(model, depth=depth, path=path)))


def test_trees_of_hundreds_of_leaves_and_of_many_branches_keep_to_it():
    steps = {"x": list(range(600)), "z": [place * 7 % 600 for place in range(600)]}
    wide = train(dataset_from_columns({**steps, "y": [place % 5 for place in range(600)]}, target="y"), "cart")
    assert wide.tree.n_leaves > 300
    check(Picture(to_svg(wide)))
    check(Picture(to_svg(wide, depth=7)))
    names = [f"value number {number}" for number in range(200)]
    many = train(dataset_from_columns({"v": names, "y": [f"c{n % 12}" for n in range(200)]}, target="y"), "id3")
    check(Picture(to_svg(many)))


def test_the_estimate_of_a_width_is_no_less_than_that_of_a_wide_font():
    for sign in [*map(chr, range(32, 127)), *SIGNS]:
        assert text_width(sign, 1) >= drawn_width(sign, 1, bold=False)
        assert text_width(sign, 1, bold=True) >= drawn_width(sign, 1, bold=True)


@given(text=st.text(max_size=80), width=st.integers(10, 300), most=st.integers(1, 4))
def test_wrapped_lines_fit_and_hold_the_whole_text_or_say_that_they_do_not(text, width, most):
    lines, whole = wrap_text(text, width=width, size=12, most=most)
    assert 1 <= len(lines) <= most
    assert all(text_width(line, 12) <= width or len(line) <= 2 for line in lines)
    shown = "".join(lines).replace(" ", "")
    assert "".join(shown.split()) == "".join(text.split()) if whole else lines[-1].endswith("…")


# What is in it


def test_each_box_shows_the_shares_of_its_classes():
    picture = Picture(to_svg(plant(MIXED, TREE)))
    bars = [
        [float(rect.get("width", "")) for rect in box.findall(f"{NAMESPACE}rect")[1:]]
        for box in picture.elements("svg")
        if box is not picture.root
    ]
    # Nodes 0 length, 1 colour, 2 a, 3 size, 4 c, 5 b, 6 b; the weights that reach each, class by class.
    weights = [(4, 5, 3), (4, 3, 3), (4,), (3, 3), (1, 3), (2,), (2,)]
    assert len(bars) == len(weights)
    for bar, expected in zip(bars, weights, strict=True):
        assert [part / sum(bar) for part in bar] == pytest.approx([part / sum(expected) for part in expected], abs=2e-3)


def test_a_class_has_the_same_colour_in_the_legend_and_in_every_part():
    model = plant(MIXED, TREE)

    def colours(svg: str) -> list[str]:
        return re.findall(r'rx="2" fill="(#\w+)"', svg)

    assert len(set(colours(to_svg(model)))) == 3
    assert colours(to_svg(model, node=6)) == colours(to_svg(model))
    leaf = re.findall(r'height="8" fill="(#\w+)"', to_svg(model, node=6))
    assert leaf == [colours(to_svg(model))[1]]


def test_of_more_than_eight_classes_the_lightest_share_a_colour():
    labels = [f"c{number:02d}" for number in range(20) for _ in range(20 - number)]
    columns = {"x": list(range(len(labels))), "y": labels}
    svg = to_svg(train(dataset_from_columns(columns, target="y"), "cart"), depth=0)
    legend = re.findall(r'rx="2" fill="(#\w+)"', svg)
    assert (len(legend), len(set(legend))) == (9, 9)
    assert "12 other classes" in svg
    # 210 rows; the eight heaviest classes have 20 + 19 + … + 13 of them.
    assert "37 % 12 other classes" in svg


def test_screen_readers_get_a_title_a_description_and_a_name_for_each_box():
    picture = Picture(to_svg(plant(MIXED, TREE), path={"length": 20.0}))
    named_by, described_by = picture.root.get("aria-labelledby"), picture.root.get("aria-describedby")
    title, description = picture.root[0], picture.root[1]
    assert (title.tag, title.get("id")) == (f"{NAMESPACE}title", named_by)
    assert (description.tag, description.get("id")) == (f"{NAMESPACE}desc", described_by)
    assert picture.root.get("role") == "graphics-document document"
    assert "Answer: b. Because: if length > 14.6155 then b" in (description.text or "")
    groups = [group for group in picture.elements("g") if group.get("role") == "graphics-symbol img"]
    description = {group.get("data-node"): group[0].text for group in groups}
    assert description["6"] == "node 6, length > 14.6155: answers b; 2 rows; 100 % b; on the path of the row"
    assert description["3"] == "node 3, colour is green: tests size; 6 rows · 50 % b; 50 % b, 50 % c"


def test_the_way_of_a_row_is_thick_and_has_its_values_and_the_rest_is_faded():
    picture = Picture(to_svg(plant(MIXED, TREE), path={"length": 20.0}))
    thick = [path for path in picture.elements("path") if float(path.get("stroke-width", "")) >= 4]
    assert [path.get("opacity") for path in thick] == [None]
    groups = {group.get("data-node"): group.get("opacity") for group in picture.elements("g") if group.get("data-node")}
    assert {node for node, opacity in groups.items() if opacity is None} == {"0", "6"}
    assert "it is 20" in [text for _, text, _ in picture.texts]


def test_a_picture_is_the_same_each_time_and_two_pictures_share_no_id():
    model = plant(MIXED, TREE)
    ids = [set(re.findall(r' id="([^"]+)"', to_svg(model, depth=depth))) for depth in (0, 1, 2, 3)]
    assert to_svg(model) == to_svg(model)
    assert len(set.union(*ids)) == sum(map(len, ids)) == 8


# Safe to embed

LEGAL_TAGS = {"svg", "title", "desc", "style", "rect", "g", "path", "text"}
LEGAL_ATTRIBUTES = {
    *(
        "class",
        "width",
        "height",
        "viewBox",
        "role",
        "aria-labelledby",
        "aria-describedby",
        "font-family",
        "id",
        "fill",
    ),
    *("x", "y", "font-size", "font-weight", "rx", "stroke", "stroke-width", "stroke-dasharray", "opacity", "d"),
    *("transform", "data-node"),
}


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:20]))
def test_names_of_others_are_text_and_nothing_else(name):
    model = hostile(name)
    svg = to_svg(model, path={model.schema.attributes[0].name: name})
    picture = Picture.__new__(Picture)
    picture.root = ET.fromstring(svg)  # noqa: S314 - our own
    assert {element.tag.removeprefix(NAMESPACE) for element in picture.root.iter()} <= LEGAL_TAGS
    assert {attribute for element in picture.root.iter() for attribute in element.attrib} <= LEGAL_ATTRIBUTES
    assert [element.text for element in picture.elements("style")] == [
        element.text
        for element in ET.fromstring(to_svg(plant(MIXED, TREE))).iter(f"{NAMESPACE}style")  # noqa: S314
    ]
    assert len(svg) < 25_000
    # What others wrote stands between tags, never in one; and nothing in a tag leads anywhere.
    values = [value for element in picture.root.iter() for value in element.attrib.values()]
    assert not [value for value in values if re.search(r"url\(|:|//|\\", value) and "Segoe" not in value]
    # No sign that XML 1.0 does not have, that begins a line, or that turns its direction.
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]", svg)
    assert svg.count("\n") == 1
    assert svg.endswith("</svg>\n")


@given(name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_name_at_all_gives_well_formed_markup_with_the_name_as_its_text(name):
    model = hostile(name)
    root = ET.fromstring(to_svg(model, depth=0))  # noqa: S314 - our own
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= LEGAL_TAGS
    if name.isprintable() and name.strip() == name:
        assert f"Classes: {name}, b." in (root[1].text or "")


def test_the_style_says_colours_and_nothing_else():
    [style] = [element.text or "" for element in Picture(to_svg(plant(MIXED, TREE))).elements("style")]
    head, rules = style.split("{", 1)
    assert head == "@media (prefers-color-scheme:dark)"
    assert re.fullmatch(r"(\.espalier-tree \.\w+\{(?:(?:fill|stroke):#[0-9a-f]{6};?)+\})+\}", rules)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio by WCAG 2.2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_and_lines_stand_out_from_their_ground_in_both_schemes(scheme):
    svg = to_svg(plant(MIXED, TREE), path={"length": 20.0})
    if scheme == "light":
        found = {
            name: dict(re.findall(r'(fill|stroke)="(#\w{6})"', mark))
            for mark in re.findall(r"<\w+ [^>]*>", svg)
            for name in re.findall(r'class="([\w ]+)"', mark)
        }
        canvas, ink = found["canvas"]["fill"], found["ink"]["fill"]
        box, predictor, edge = found["box edge"]["fill"], found["path"]["stroke"], found["edge"]["stroke"]
    else:
        dark = dict(re.findall(r"\.espalier-tree \.(\w+)\{\w+:(#\w{6})", svg))
        canvas, ink, box, predictor, edge = (dark[name] for name in ("canvas", "ink", "box", "path", "edge"))
    assert contrast(ink, canvas) >= 7
    assert contrast(ink, box) >= 7
    assert contrast(predictor, canvas) >= 4.5
    assert contrast(edge, canvas) >= 3


def test_numbers_so_large_that_one_more_is_the_same_number_are_drawn() -> None:
    schema = {"target": "y", "task": "regression"}
    data = dataset_from_columns({"x": [1.0, 2.0, 3.0], "y": [1e17, 1e17, 1e17]}, schema=schema)
    assert to_svg(train(data, "cart")).endswith("</svg>\n")
