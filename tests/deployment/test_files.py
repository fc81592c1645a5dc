"""Dockerfile, .dockerignore and compose.yaml against the code: settings, commands and folders that are there."""

import fnmatch
import json
import re
import shlex
from pathlib import PurePosixPath

import pytest

from service import gunicorn_conf
from service.cli.__main__ import COMMANDS
from service.settings import Settings, check_listening, variables
from tests.deployed import OURS, compose, dockerfile, image_environment, processes
from tests.factories import ROOT

STAGES = dockerfile()
FINAL = {step.word: step.text for step in STAGES[-1]}
SETTINGS = {variable.name for variable in variables()}
COMPOSE = (ROOT / "compose.yaml").read_text()
SHARED = compose()["x-espalier"]


def settings_of(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    ours = {name: value for name, value in environment.items() if name.startswith("ESPALIER_")}
    assert ours.keys() <= SETTINGS
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    return Settings.from_env()


def test_both_stages_are_made_from_the_slim_image_of_python() -> None:
    assert [stage[0].text.split()[0] for stage in STAGES] == ["python:3.13-slim"] * 2


def test_the_libraries_are_those_of_the_lock_by_their_hashes_and_without_a_compiler() -> None:
    [install] = [step.text for step in STAGES[0] if "requirements.lock" in step.text and step.word == "RUN"]
    assert {"--require-hashes", "--only-binary"} <= set(shlex.split(install))


def test_the_image_listens_for_everybody_asks_for_keys_and_keeps_all_in_its_volume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = settings_of(image_environment(), monkeypatch)
    check_listening(settings)
    assert (settings.auth, settings.host, str(settings.port)) == ("keys", "0.0.0.0", FINAL["EXPOSE"])  # noqa: S104
    assert settings.database_file is not None
    assert str(settings.database_file.parent) == settings.work == FINAL["VOLUME"] == FINAL["WORKDIR"] == "/data"


def test_the_image_is_run_by_a_user_without_rights_of_whom_its_volume_is() -> None:
    [making] = [step.text for step in STAGES[-1] if step.word == "RUN"]
    assert FINAL["USER"] == "espalier"
    assert "useradd --uid 10001 " in making
    assert "install --directory --owner=espalier " in making
    last_of_root = [step.word for step in STAGES[-1]].index("USER")
    assert not [step for step in STAGES[-1][last_of_root:] if step.word in {"RUN", "COPY", "ADD"}]


def test_what_the_image_runs_are_commands_of_ours() -> None:
    health = FINAL["HEALTHCHECK"].partition("CMD ")[2]
    (program, checking), [entry], [command] = (json.loads(text) for text in (health, FINAL["ENTRYPOINT"], FINAL["CMD"]))
    assert (program, entry) == ("espalier", "espalier")
    assert {checking, command} <= COMMANDS.keys()


def test_everything_that_is_copied_is_there_and_let_through() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    copied = [word for step in STAGES[0] if step.word == "COPY" for word in step.text.split()[:-1]]
    assert "requirements.lock" in copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert not is_ignored(name, rules), name
    for kept_out in (".git", ".venv", "tests", "var", "espalier/kernels/__pycache__", ".env"):
        assert is_ignored(kept_out, rules), kept_out


def is_ignored(name: str, rules: list[str]) -> bool:
    """Do as .dockerignore is read: the last rule that fits a path or a folder above it decides."""
    path = PurePosixPath(name)
    ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!")
        anywhere = pattern.startswith("**/")
        names = [one.name if anywhere else str(one) for one in (path, *path.parents)]
        if any(
            fnmatch.fnmatchcase(one, pattern.removeprefix("**/")) for one in names if "/" not in one or "/" in pattern
        ):
            ignored = not rule.startswith("!")
    return ignored


@pytest.mark.parametrize("place", range(len(processes())))
def test_every_container_of_ours_has_a_command_and_legal_settings(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, command, environment = processes()[place]
    assert set(command) <= COMMANDS.keys()
    settings = settings_of(environment, monkeypatch)
    assert settings.database_url == "postgresql+psycopg://espalier:espalier@database:5432/espalier"
    assert settings.auth == "keys"


def test_there_is_one_migration_two_web_servers_and_two_workers_on_one_database() -> None:
    assert sorted(command[0] for _, command, _ in processes()) == ["migrate", "serve", "serve", "worker", "worker"]
    services = compose()["services"]
    assert [name for name, service in services.items() if service["image"] != OURS] == ["database", "proxy"]
    assert services["database"]["volumes"][0].partition(":")[0] in compose()["volumes"]


def test_nothing_starts_before_what_it_needs() -> None:
    services = compose()["services"]
    assert "healthcheck" in services["database"]
    assert services["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    for name in ("web-1", "web-2", "worker"):
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_only_web_servers_are_asked_for_their_health_and_only_the_proxy_is_published() -> None:
    services = {name: service for name, service in compose()["services"].items() if service["image"] == OURS}
    asked = [name for name, service in services.items() if "healthcheck" not in service]
    assert asked == ["web-1", "web-2"]
    assert [name for name, service in compose()["services"].items() if "ports" in service] == ["proxy"]


def test_a_proxy_that_buffers_stands_before_the_web_servers_which_believe_its_headers() -> None:
    told = compose()
    configuration = told["configs"]["proxy"]["content"]
    webs = [name for name, command, _ in processes() if list(command) == ["serve"]]
    assert told["services"]["proxy"]["configs"][0]["source"] == "proxy"
    assert re.findall(r"server ([\w-]+):(\d+);", configuration) == [(name, FINAL["EXPOSE"]) for name in webs]
    assert "buffering off" not in configuration
    [idle] = re.findall(r"keepalive_timeout (\d+)s;", configuration)
    assert int(idle) < gunicorn_conf.keepalive  # else a request may meet a connection that gunicorn closes
    believed = {f"X-Forwarded-{name}" for name in ("For", "Proto", "Host", "Port", "Prefix")}
    assert believed == set(re.findall(r"proxy_set_header (X-Forwarded-\w+) ", configuration))
    assert "$" not in configuration.replace("$$", "")  # of one alone compose would make a variable
    assert all(told["services"][name]["environment"]["ESPALIER_PROXIES"] == "1" for name in webs)


def test_our_containers_may_write_to_a_temporary_folder_only_and_hold_no_rights() -> None:
    for service in compose()["services"].values():
        if service["image"] == OURS:
            assert {name: service[name] for name in ("read_only", "tmpfs", "cap_drop", "init")} == {
                "read_only": True,
                "tmpfs": ["/tmp"],  # noqa: S108 - in the container
                "cap_drop": ["ALL"],
                "init": True,
            }


def test_every_secret_is_taken_from_the_environment() -> None:
    given = {
        "POSTGRES_PASSWORD": "othersecret",
        "ESPALIER_ADMIN_KEY": "mykey",
        "ESPALIER_SESSION_SECRET": "logins",
        "WEB_ADDRESS": "192.0.2.1",
    }
    services = compose(given)["services"]
    assert services["database"]["environment"]["POSTGRES_PASSWORD"] == "othersecret"  # noqa: S105 - of this test
    for name, _, environment in processes(given):
        assert ":othersecret@" in environment["ESPALIER_DATABASE_URL"]
        assert environment.get("ESPALIER_ADMIN_KEY") == ("mykey" if name == "migrate" else None)
        assert environment.get("ESPALIER_SESSION_SECRET") == ("logins" if name.startswith("web") else None)
    assert services["proxy"]["ports"] == ["192.0.2.1:8080:80"]
    for name in given:
        assert f"#   {name} " in COMPOSE
