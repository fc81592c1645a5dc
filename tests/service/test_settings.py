"""The settings: their defaults, their faults, and where one may listen."""

import dataclasses
from pathlib import Path

import pytest
from sqlalchemy import make_url

from service.errors import SettingsError
from service.settings import Settings, check_listening, variables

# Of these, SQLAlchemy takes a part of the password for the host or the port, or cannot read them.
MISREAD = [
    "postgresql+psycopg://me:pa@secret@host/db",
    "postgresql+psycopg://me:secret/db",
    "postgresql+psycopg://m/e:secret@host/db",
    "postgresql+psycopg://me@[::1]/db?password=secret@",
    "postgresql+psycopg://host:123456/secret",
    # The tables would be created in the database that is named like the user.
    "postgresql+psycopg://me:secret@host:5432",
    "postgresql+psycopg://me:secret@host:5432/",
]


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in variables():
        monkeypatch.delenv(variable.name, raising=False)


def test_without_variables_the_defaults_hold() -> None:
    assert Settings.from_env() == Settings()


def test_each_variable_fills_the_field_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "DATABASE_URL": "postgresql+psycopg://me:secret@db.example:5432/trees",
        "HOST": "::1",
        "PORT": "9000",
        "AUTH": "keys",
        "ADMIN_KEY": "esp_01890000-0000-7000-8000-000000000000_" + "s" * 43,
        "SESSION_SECRET": "s" * 32,
        "WEB_WORKERS": "3",
        "WEB_THREADS": "4",
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "info",
        "LOG_REQUESTS": "on",
        "TRACES": "on",
        "METRICS": "off",
        "LEASE_SECONDS": "2.5",
        "JOB_SECONDS": "60",
        "JOB_MEMORY_MB": "512",
        "JOB_ATTEMPTS": "5",
        "WORK": "/srv/work",
        "STORE": "s3://tables/sales?region=eu-central-1",
        "DASK": "tls://scheduler.example:8786",
        "DECISIONS": "off",
        "RETENTION_DAYS": "365",
        "JOB_DAYS": "30",
        "REPLAY_SECONDS": "90.5",
        "MAX_BODY_MB": "1",
        "MAX_UPLOAD_MB": "5",
        "MAX_ROWS": "10",
        "MAX_COLUMNS": "20",
        "MAX_CELLS": "22",
        "MAX_CELL_CHARS": "25",
        "READER_MEMORY_MB": "600",
        "MAX_NODES": "26",
        "MAX_JOBS": "27",
        "MAX_REQUESTS": "28",
        "MAX_PREDICT_ROWS": "30",
        "MAX_FULL_NODES": "31",
        "PROXIES": "1",
        "PATH_PREFIX": "/a/trees",
        "CORS_ORIGINS": "https://a.example,http://localhost:3000",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"ESPALIER_{name}", value)

    settings = Settings.from_env()

    assert len(given) == len(variables())
    assert {name: str(getattr(settings, name.lower())) for name in given} == given | {"JOB_SECONDS": "60.0"}


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPALIER_PORT", "")

    assert Settings.from_env().port == 8080


def test_all_faults_are_shown_at_once_with_what_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPALIER_PORT", "eighty")
    monkeypatch.setenv("ESPALIER_WEB_WORKERS", "0")
    monkeypatch.setenv("ESPALIER_AUTH", "password")
    monkeypatch.setenv("ESPALIER_LEASE_SECONDS", "nan")

    with pytest.raises(SettingsError) as caught:
        Settings.from_env()

    assert sorted(caught.value.faults) == [
        "ESPALIER_AUTH: given 'password'; legal: none or keys",
        "ESPALIER_LEASE_SECONDS: given 'nan'; legal: seconds from 1 to 3600",
        "ESPALIER_PORT: given 'eighty'; legal: a whole number from 1 to 65535",
        "ESPALIER_WEB_WORKERS: given '0'; legal: a whole number from 1 to 256",
    ]


@pytest.mark.parametrize(
    "url", ["mysql://me:secret@host/db", "postgresql://me:secret@host/db", "sqlite://", "secret", *MISREAD]
)
def test_a_wrong_database_url_is_not_repeated_since_it_may_hold_a_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPALIER_DATABASE_URL", url)

    with pytest.raises(SettingsError) as caught:
        Settings.from_env()

    assert "ESPALIER_DATABASE_URL" in str(caught.value)
    assert "postgresql+psycopg://" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql+psycopg://me:a%40b%2Fc@host:5432/db", ("me", "a@b/c", "host", 5432, "db")),
        ("postgresql+psycopg://me:a/b?c#d:e@[::1]:5432/db?sslmode=require", ("me", "a/b?c#d:e", "::1", 5432, "db")),
        ("postgresql+psycopg:///db?host=/run/postgresql", (None, None, None, None, "db")),
    ],
)
def test_a_legal_database_url_is_read_as_it_is_meant(
    url: str, parts: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPALIER_DATABASE_URL", url)

    read = make_url(Settings.from_env().database_url)

    assert (read.username, read.password, read.host, read.port, read.database) == parts


@pytest.mark.parametrize(
    "given", ["hunter2", "esp_admin_" + "s" * 43, "esp_01890000-0000-7000-8000-000000000000_short"]
)
def test_a_first_key_that_is_none_is_refused_and_not_repeated(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPALIER_ADMIN_KEY", given)

    with pytest.raises(SettingsError, match="ESPALIER_ADMIN_KEY") as caught:
        Settings.from_env()

    assert given not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("PATH_PREFIX", "trees"),
        ("PATH_PREFIX", "/trees/"),
        ("PATH_PREFIX", "//evil.example"),
        ("HOST", "a..b"),
        ("HOST", "a" * 64),  # RFC 1035: a label has at most 63 characters
        ("HOST", "[::1]"),
        ("HOST", "\udcff"),  # the environment may have bytes that are not UTF-8
        ("WORK", "/\udcff"),
        ("DATABASE_URL", "sqlite:///\udcff.db"),
        ("DATABASE_URL", "postgresql+psycopg://me@db..svc/x"),
        ("DATABASE_URL", f"postgresql+psycopg://me@{'a' * 64}/x"),
        ("DATABASE_URL", "postgresql+psycopg://\udcff@db/x"),
        ("STORE", "file:///\udcff"),
        ("CORS_ORIGINS", "*"),
        ("CORS_ORIGINS", "https://a.example/"),
        ("CORS_ORIGINS", "https://a.example,"),
        ("PROXIES", "-1"),
        ("MAX_CELL_CHARS", "131073"),  # Python's csv.field_size_limit() is 131 072
    ],
)
def test_what_is_no_prefix_no_origin_no_host_and_no_number_is_refused(
    name: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ESPALIER_{name}", given)

    with pytest.raises(SettingsError, match=f"ESPALIER_{name}"):
        Settings.from_env()


def test_origins_are_compared_as_browsers_send_them() -> None:
    given = "https://App.example:443,http://b.example:80,http://c.example:443,https://d.example:4430"

    assert Settings(cors_origins=given).shared_with == {
        "https://app.example", "http://b.example", "http://c.example:443", "https://d.example:4430"
    }  # fmt: skip
    assert Settings().shared_with == frozenset()


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "db", "my_db", "a.b.example.", "a" * 63, "bücher.example"],
)
def test_names_and_addresses_of_hosts_are_legal(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPALIER_HOST", host)
    assert Settings.from_env().host == host
    if ":" not in host:
        monkeypatch.setenv("ESPALIER_DATABASE_URL", url := f"postgresql+psycopg://me:p@{host},{host}:5432/x")
        assert Settings.from_env().database_url == url


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost"])
def test_without_keys_the_service_listens_on_loopback(host: str) -> None:
    check_listening(Settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org"])  # noqa: S104
def test_without_keys_the_service_refuses_to_listen_elsewhere(host: str) -> None:
    with pytest.raises(SettingsError, match=r"ESPALIER_HOST.*127\.0\.0\.1"):
        check_listening(Settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])  # noqa: S104
def test_with_keys_the_service_listens_anywhere(host: str) -> None:
    check_listening(Settings(host=host, auth="keys"))


def test_a_socket_that_is_open_already_counts_by_its_own_address() -> None:
    with pytest.raises(SettingsError, match=r"given '0\.0\.0\.0'"):
        check_listening(Settings(), "0.0.0.0")  # noqa: S104


def test_the_database_file_is_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert Settings().database_file == tmp_path / "var" / "espalier.db"
    assert Settings(database_url="sqlite:////srv/a.db").database_file == Path("/srv/a.db")
    assert Settings(database_url="postgresql+psycopg://host/db").database_file is None
