"""Create the pictures of pages in docs/pictures: ``python -m tools.page_pictures``.

Starts the service with its examples on a new database, and opens its pages in Debian's chromium.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
ROW = {"Age": 47, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 13.1}
SIZE = {"width": 1100, "height": 960}
START_SECONDS = 180


def main() -> None:
    """Write the pictures of a tree and of a decision."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ESPALIER_DATABASE_URL": f"sqlite:///{folder}/espalier.db"}
        command = [sys.executable, "-m", "service.cli", "up", "--examples", "--port", str(port)]
        service = subprocess.Popen(command, env=environment)  # noqa: S603 - our own command
        try:
            _wait_for(f"{address}/v1/models/drug200/versions/1")
            _take(address)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()


def _take(address: str) -> None:
    answer = httpx.post(
        f"{address}/v1/models/drug200/predict", json={"rows": [ROW], "subject": "patient 17"}, timeout=60
    )
    decision = answer.json()["predictions"][0]["decision_id"]
    pages = {"page_tree": "models/drug200/versions/1?node=1", "page_decision": f"decisions/{decision}"}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), chromium_sandbox=False)
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type] # as a mapping
        for name, path in pages.items():
            page.goto(f"{address}/ui/{path}")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            if httpx.get(address).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    sys.exit(f"{address} does not answer")


if __name__ == "__main__":
    main()
