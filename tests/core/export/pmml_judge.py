"""Run by the Python of another environment: the answers of jpmml-evaluator and PMML4S to rows, of many documents.

Reads ``[{"text", "names", "rows", "outputs"}, …]`` as JSON from standard input, the names of the judges as arguments,
and writes, for each document, ``{"jpmml": [[output, …], …], "pmml4s": …}``, or a text instead of a list where the
document is refused.
"""

import json
import sys
from pathlib import Path

import jpmml_evaluator
import jpype
import pypmml
from pandas import DataFrame


def jpmml(document):
    evaluator = jpmml_evaluator.make_evaluator(document["text"].encode())
    table = DataFrame(document["rows"], columns=document["names"], dtype=object)
    found, errors = evaluator.evaluateAll(table, error_col=None, parallelism=1)
    refused = [] if errors is None else [error for error in errors if isinstance(error, str)]
    if refused:
        return refused[0]
    return found[document["outputs"]].astype(object).values.tolist()


def pmml4s(document):
    model = jpype.JClass("org.pmml4s.model.Model").fromString(document["text"])
    found = json.loads(str(model.predict(json.dumps({"columns": document["names"], "data": document["rows"]}))))
    places = [found["columns"].index(name) for name in document["outputs"]]
    return [[row[place] for place in places] for row in found["data"]]


def judged(judge, document):
    try:
        return judge(document)
    except Exception as error:  # of either library, or of Java
        return f"{type(error).__name__}: {error}"


def main() -> None:
    jars = map(str, (Path(pypmml.__file__).parent / "jars").glob("*.jar"))
    # Of the seconds that Java takes most would go into compiling what it runs a few times.
    options = ("-Xss256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    jpype.startJVM(*options, classpath=[*jpmml_evaluator._classpath([]), *jars])
    documents = json.load(sys.stdin)
    judges = [judge for judge in (jpmml, pmml4s) if judge.__name__ in sys.argv[1:]]
    json.dump([{judge.__name__: judged(judge, one) for judge in judges} for one in documents], sys.stdout)


if __name__ == "__main__":
    main()
