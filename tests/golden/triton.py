"""Writes down, byte for byte, what tritonclient sends: `python -m tests.golden.triton`.

Each file below ``triton/`` is one request as it went over the wire, its Host replaced. The tests that send them again
need no tritonclient. A file that is there is left as it is.
"""

import asyncio
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

FOLDER: Final = Path(__file__).resolve().parent / "triton"
# Three patients of service/examples/drug200.csv's kind; the last one's Na_to_K is not known.
AGE: Final = np.array([50, 22, 67], np.int64)
NA_TO_K: Final = np.array([12.25, 25.5, np.nan], np.float32)
TEXTS: Final = {"Sex": ["F", "M", "M"], "BP": ["HIGH", "LOW", "LOW"], "Cholesterol": ["NORMAL", "HIGH", "HIGH"]}
# The same as a matrix of texts in the schema's order.
MATRIX: Final = np.array(
    [["50", "F", "HIGH", "NORMAL", "12.25"], ["22", "M", "LOW", "HIGH", "25.5"], ["67", "M", "LOW", "HIGH", ""]],
    dtype=np.object_,
)
INFERENCES: Final[dict[str, dict[str, Any]]] = {
    "binary": {},
    "binary_gzip": {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"},
    "binary_deflate": {"request_compression_algorithm": "deflate", "response_compression_algorithm": "deflate"},
    "json": {},
    "json_gzip": {"request_compression_algorithm": "gzip"},
    "matrix": {},
    "matrix_json": {},
    "some_outputs": {},
}


def inputs(module: Any, case: str) -> list[Any]:
    """Give the tensors of a case."""
    binary = "json" not in case
    if case.startswith("matrix"):
        return [module.InferInput("rows", [3, 5], "BYTES").set_data_from_numpy(MATRIX, binary_data=binary)]
    numbers = [("Age", "INT64", AGE), ("Na_to_K", "FP32", NA_TO_K)]
    texts = [(name, "BYTES", np.array(cells, np.object_).reshape(3, 1)) for name, cells in TEXTS.items()]
    return [
        module.InferInput(name, list(array.shape), datatype).set_data_from_numpy(array, binary_data=binary)
        for name, datatype, array in (*numbers, *texts)
    ]


def options(module: Any, case: str) -> dict[str, Any]:
    """Give what else is asked for in a case."""
    more = dict(INFERENCES[case])
    if case == "some_outputs":
        wanted = (("decision_path", False), ("label", True))
        more["outputs"] = [module.InferRequestedOutput(name, binary_data=binary) for name, binary in wanted]
        more |= {"request_id": "visit 17", "parameters": {"subject": "patient 4"}}
    if case.startswith("json"):
        names = ("label", "probability", "leaf_id", "decision_id")
        more["outputs"] = [module.InferRequestedOutput(name, binary_data=False) for name in names]
    return more


CALLS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "server_live": lambda client, _: client.is_server_live(),
    "server_ready": lambda client, _: client.is_server_ready(),
    "server_metadata": lambda client, _: client.get_server_metadata(),
    "model_ready": lambda client, _: client.is_model_ready("drugs"),
    "version_ready": lambda client, _: client.is_model_ready("drugs", "1"),
    "model_metadata": lambda client, _: client.get_model_metadata("drugs"),
    "version_metadata": lambda client, _: client.get_model_metadata("drugs", "1"),
    "repository_index": lambda client, _: client.get_model_repository_index(),
    **{
        f"infer_{case}": lambda client, module, case=case: client.infer(
            "drugs", inputs(module, case), **options(module, case)
        )
        for case in INFERENCES
    },
}


def record() -> None:
    """Write each request that is not there yet, of both clients."""
    import tritonclient.http as blocking  # noqa: PLC0415 - needed for writing only
    import tritonclient.http.aio as waiting  # noqa: PLC0415 - as above

    FOLDER.mkdir(exist_ok=True)
    for name, call in CALLS.items():
        _write(f"sync_{name}", lambda address, call=call: call(blocking.InferenceServerClient(address), blocking))
        _write(f"aio_{name}", lambda address, call=call: asyncio.run(_asked(waiting, address, call)))


async def _asked(module: Any, address: str, call: Callable[[Any, Any], Any]) -> None:
    async with module.InferenceServerClient(address) as client:
        await call(client, module)


def _write(name: str, ask: Callable[[str], Any]) -> None:
    file = FOLDER / f"{name}.http"
    if file.exists():
        return
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = threading.Thread(target=_hear, args=(server, heard))
        listener.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        try:
            ask(address)
        except Exception as error:  # the answer is empty, and no client likes that
            print(name, type(error).__name__)  # noqa: T201 - a command
        listener.join()
    file.write_bytes(heard[0].replace(address.encode(), b"127.0.0.1:8080", 1))


def _hear(server: socket.socket, heard: list[bytes]) -> None:
    connection, _ = server.accept()
    with connection:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: *([0-9]+)", head, re.IGNORECASE)
        while len(body) < (int(length[1]) if length else 0):
            body += connection.recv(65536)
        heard.append(head + b"\r\n\r\n" + body)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


if __name__ == "__main__":
    record()
