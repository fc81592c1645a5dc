"""Run by the Python of another environment: the answers of pyDMNrules to rows, of many documents.

Reads ``[{"text", "rows", "outputs"}, …]`` as JSON from standard input and writes for each document its answers,
``[[output, …], …]``, or a text if the document is refused.
"""

import json
import sys

from pyDMNrules import DMN


def answers(document):
    engine = DMN()
    status = engine.useXML(document["text"])
    if status:
        return str(status)
    return [answer(engine, row, document["outputs"]) for row in document["rows"]]


def answer(engine, row, outputs):
    status, found = engine.decide(row)
    if status:
        return str(status)
    result = (found[-1] if isinstance(found, list) else found)["Result"]
    return [result[name] for name in outputs]


def main() -> None:
    json.dump([answers(document) for document in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
