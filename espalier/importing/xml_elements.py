"""XML as elements, read as hostile input.

A document type, which may declare entities, is refused. So is a document of more than `MAX_BYTES` bytes or more than
`MAX_ELEMENTS` elements, or with elements deeper than `MAX_DEPTH`. No function here is recursive, so a deep document
cannot exhaust the stack.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from espalier.errors import DocumentError, Fault

MAX_BYTES: Final = 256 * 2**20
MAX_DEPTH: Final = 10_000
MAX_ELEMENTS: Final = 1_000_000
MAX_MESSAGE_CHARS: Final = 500
SEPARATOR: Final = " "


@dataclass(slots=True)
class Element:
    """An element.

    Attributes:
        name: Its name without the namespace.
        attributes: Values of its attributes that have no namespace, by name.
        line, column: Where it begins, each counted from 1.
        children: The elements directly in it, without those that are ignored.
        texts: The text directly in it, in parts, without blank parts at the start.
    """

    name: str
    attributes: Mapping[str, str]
    line: int
    column: int
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def get(self, name: str) -> str | None:
        """Return an attribute, None if it is absent."""
        return self.attributes.get(name)

    def all(self, *names: str) -> Iterator["Element"]:
        """Yield the children with one of these names."""
        return (child for child in self.children if child.name in names)

    def first(self, *names: str) -> "Element | None":
        """Return the first child with one of these names; None if there is none."""
        return next(self.all(*names), None)

    def refused(self, message: str) -> DocumentError:
        """Return the error for an element that cannot be imported exactly, with its line, column and name."""
        return _refusal("not_legal", self.line, self.column, f"{self.name}: {message}")


class _Reader:
    def __init__(self, namespaces: tuple[str, ...], ignored: frozenset[str]) -> None:
        self.parser = expat.ParserCreate(namespace_separator=SEPARATOR)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.document_type
        self.namespaces, self.ignored = namespaces, ignored
        self.open = list[Element]()
        self.root: Element | None = None
        self.n_elements = 0
        self.n_skipped = 0  # open elements that are ignored

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.n_elements += 1
        if self.n_elements > MAX_ELEMENTS:
            raise self.fault("too_large", f"has more than {MAX_ELEMENTS} elements")
        if len(self.open) + self.n_skipped >= MAX_DEPTH:
            raise self.fault("too_large", f"has elements deeper than {MAX_DEPTH}")
        namespace, _, local = name.rpartition(SEPARATOR)
        if self.n_skipped or (self.open and local in self.ignored):
            self.n_skipped += 1
            return
        if not namespace.startswith(self.namespaces):
            legal = f"legal namespaces begin with {self.namespaces[0]}"
            raise self.fault("not_legal", f"has the element {local} in the namespace {namespace!r}; {legal}")
        plain = {key: value for key, value in attributes.items() if SEPARATOR not in key}
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        element = Element(local, plain, line, column)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, name: str) -> None:
        if self.n_skipped:
            self.n_skipped -= 1
        else:
            self.open.pop()

    def characters(self, text: str) -> None:
        if not self.n_skipped and self.open and (self.open[-1].texts or not text.isspace()):
            self.open[-1].texts.append(text)

    def document_type(self, *_: object) -> None:
        raise self.fault("not_legal", "must have no document type (DOCTYPE), which may hold entities")

    def fault(self, code: str, message: str) -> DocumentError:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return _refusal(code, line, column, f"the document {message}")


def _refusal(code: str, line: int, column: int, message: str) -> DocumentError:
    """Return an error with line and column; the message is cut, since names in a document may have any length."""
    return DocumentError([Fault("", code, f"line {line}, column {column}: {message[:MAX_MESSAGE_CHARS]}")])


def read_xml(content: bytes, *, namespaces: tuple[str, ...], ignored: frozenset[str]) -> Element:
    """Return the root element of a document in UTF-8, or in the encoding that its declaration names.

    Args:
        content: The document.
        namespaces: The namespace of each element that is not ignored must begin with one of these.
        ignored: Names of elements below the root that are left out, together with their contents.

    Raises:
        DocumentError: The document is not well-formed, exceeds a limit, or has a document type, an unknown
            encoding or an illegal namespace.
    """
    if len(content) > MAX_BYTES:
        raise DocumentError([Fault("", "too_large", f"must have at most {MAX_BYTES} bytes")])
    reader = _Reader(namespaces, ignored)
    try:
        # Parsed at once: in parts, a long attribute would take quadratic time.
        reader.parser.Parse(content, True)  # noqa: FBT003 - it takes no keywords
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        message = f"not well-formed XML: line {error.lineno}, column {error.offset + 1}: {what}"
        raise DocumentError([Fault("", "not_xml", message)]) from None
    except (LookupError, ValueError):  # from Python's codecs
        raise DocumentError(
            [Fault("", "not_xml", "its encoding is unknown, or is not the one that its XML declaration names")]
        ) from None
    assert reader.root is not None  # noqa: S101 - expat refuses a document without an element
    return reader.root
