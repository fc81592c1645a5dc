"""Names and labels that would like to be more than text."""

from espalier import Feature, FeatureKind, Model, Role, Schema
from tests.core.planted import Ask, Leaf, plant

HOSTILE = [
    "</script><script>alert(1)</script>",
    "</title></svg><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "' onclick='alert(1)",
    "]]> <!-- <![CDATA[ <?xml ?>",
    "&lt;b&gt; &#60; &amp;",
    "a\nb\r\nc\td\u2028e\x85f",
    "\x01\x1b[31m\x7f\x9f",
    "\ufffe\uffff\ufdd0",
    "\u202egnp.exe",
    "العربية עברית",
    "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001f9a0",
    "𓀀﷽‱",
    "e\u0301\u0301\u0301" * 50,
    "x" * 10_000,
    "x " * 5_000,
    "url(javascript:alert(1))",
    "@import 'http://example.org/a.css';",
    " ",
]


def hostile(name: str) -> Model:
    """A tree of two leaves in which attribute, category and class have this name."""
    schema = Schema(
        (
            Feature(name[:1000].strip() or "x", FeatureKind.NOMINAL, categories=(name, "b")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, (name, "b")),
        )
    )
    return plant(schema, Ask(0, (0, 1), (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))
