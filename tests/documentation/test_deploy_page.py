"""The page on deployment: its session, its image's settings and commands, its backup, its proxy's headers."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from service.cli.__main__ import COMMANDS
from service.settings import variables
from tests.acceptance.running import environment_for, running
from tests.deployed import compose, image_environment
from tests.documentation.pages import PAGES, blocks, session, text_of
from tests.factories import ROOT

PAGE = text_of("operations/deploy.md")
README = text_of("README.md")
ADMIN = "esp_01890000-0000-7000-8000-000000000000_" + "deployment" * 5
# The word docker, where there is none: the container is the service that runs, its volume the folder of its file.
STAND_IN = """
docker() {
  case "$1 $2 $3" in
    "exec espalier espalier") shift 3; "$PYTHON" -m service.cli "$@" ;;
    "exec espalier python3") shift 3; arguments=("${@//\\/data\\//$VOLUME/}"); "$PYTHON" "${arguments[@]}" ;;
    "cp --quiet espalier:/data/"*) cp "$VOLUME/${3#espalier:/data/}" "$4" ;;
    *) echo "no container here does: $*" >&2; return 1 ;;
  esac
}
"""


def block(language: str) -> str:
    [found] = blocks(PAGE, language)
    return found


def test_the_session_prints_what_the_page_says_and_its_copy_is_the_whole_service(tmp_path: Path) -> None:
    volume, copied = tmp_path / "volume", tmp_path / "copied"
    for folder in (volume, copied, tmp_path / "service"):
        folder.mkdir()
    (tmp_path / "service" / "examples").symlink_to(ROOT / "service" / "examples")
    settings = {"ESPALIER_AUTH": "keys", "ESPALIER_ADMIN_KEY": ADMIN}
    ours = {"PYTHON": sys.executable, "VOLUME": str(volume), "PYTHONPATH": str(ROOT)}
    environment = environment_for(volume) | settings | ours
    with running(volume, **settings) as service:
        shown = session(STAND_IN + block("sh"), service, tmp_path, env=environment)
    assert shown == block("text")

    shutil.copy(tmp_path / "espalier-copy.db", copied / "espalier.db")
    with running(copied, **settings) as again:
        again.client.headers["Authorization"] = f"Bearer {ADMIN}"
        assert [data_set["name"] for data_set in again.get("/v1/datasets")["items"]] == ["patients"]


def test_the_settings_of_the_image_are_those_that_the_page_lists() -> None:
    listed = dict(re.findall(r"^\| `(ESPALIER_\w+)` \| `([^`]+)` \|$", PAGE, flags=re.MULTILINE))
    assert listed == {name: value for name, value in image_environment().items() if name.startswith("ESPALIER_")}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ("benchmarks.md", "decisions.md")], ids=lambda page: page.name
)
def test_every_setting_and_every_command_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"ESPALIER_[A-Z_]+", text)) <= {variable.name for variable in variables()}
    assert set(re.findall(r"`espalier ([a-z]+)", text)) <= COMMANDS.keys()
    for line in re.findall(r"^    docker run (.*?)(?: *#.*)?$", text, flags=re.MULTILINE):
        words = shlex.split(line)
        after = words[words.index("espalier", words.index("-v")) + 1 :] if "-v" in words else words[-1:]
        assert "--entrypoint" in words or set(after) <= COMMANDS.keys(), line


def test_what_is_said_of_compose_is_so() -> None:
    services = compose()["services"]
    assert "on 127.0.0.1, port 8080" in PAGE
    assert services["proxy"]["ports"] == ["127.0.0.1:8080:80"]
    database = services["database"]["environment"]
    user, name = database["POSTGRES_USER"], database["POSTGRES_DB"]
    assert f"docker compose exec database pg_dump --username={user} --format=custom {name} " in PAGE
    for variable in ("POSTGRES_PASSWORD", "ESPALIER_ADMIN_KEY"):
        assert f"`{variable}`" in PAGE
        assert f"${{{variable}:-" in (ROOT / "compose.yaml").read_text()


def test_the_proxy_sets_or_empties_every_header_that_the_service_believes() -> None:
    # werkzeug's ProxyFix counts these five.
    believed = {f"X-Forwarded-{name}" for name in ("For", "Proto", "Host", "Port", "Prefix")}
    assert believed == set(re.findall(r"proxy_set_header (X-Forwarded-\w+) ", block("nginx")))


def test_the_page_is_found_from_the_readme() -> None:
    assert "(docs/operations/deploy.md)" in README
    assert os.access(ROOT / "docs" / "operations" / "deploy.md", os.R_OK)
