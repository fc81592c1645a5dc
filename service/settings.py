"""The settings of the service, read from the environment.

The variable of a field is `ESPALIER_` plus the field's name in capitals. Each field has a default and a `Rule`.
"""

import ipaddress
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from service.errors import SettingsError

PREFIX = "ESPALIER_"
READ_ELSEWHERE = re.compile("ESPALIER_(REFERENCE|TEST_.*|CHECKED|CPU)")  # by tests, or when the kernels are compiled
MAX_CELL_CHARS = 131_072  # the limit of the standard library's CSV reader
MAX_LEASE_SECONDS = 3600  # maximum time that a silent worker keeps its job
SQLITE_FILE = "sqlite:///"
TOKEN = re.compile(
    r"esp_(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43,128})"
)
HOST_NAME = r"[\w-]{1,63}(\.[\w-]{1,63})*\.?"  # a name with an empty or a longer part cannot be looked up (RFC 1035)
HOST = HOST_NAME + r"|[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){1,8}(\.[0-9]{1,3})*(%[\w.-]{1,15})?"  # or an IPv6 address
# SQLAlchemy reads such a URL correctly; of others, it might take a part of the password for the host or the port.
POSTGRES_URL = (
    rf"postgresql\+psycopg://([^\s:/@]*(:[^\s@]*)?@)?(\[[0-9A-Fa-f:.]+\]|({HOST_NAME}(,{HOST_NAME})*)?)"
    r"(:[0-9]{1,5})?/[^\s/@?]+(\?[^\s@]*)?"
)
PATH_PREFIX = "(/[A-Za-z0-9._~-]+)+"
ORIGIN = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?"


@dataclass(frozen=True, slots=True)
class Rule:
    """How the text of a variable is read, which values are legal, and what the variable means."""

    read: Callable[[str], Any]
    is_legal: Callable[[Any], bool]
    legal: str
    meaning: str
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, the field it fills, its default as text, and its rule."""

    name: str
    field: str
    default: str
    rule: Rule


def _setting(default: object, rule: Rule) -> Any:
    return field(default=default, metadata={"rule": rule})


def _text(default: str, pattern: str, legal: str, meaning: str, *, secret: bool = False) -> Any:
    matches = re.compile(pattern).fullmatch
    return _setting(default, Rule(str, lambda text: bool(matches(text)), legal, meaning, secret))


def _is_host(text: str) -> bool:
    return bool(re.fullmatch(HOST, text) and text.encode("idna"))  # a name without such a form raises a `ValueError`


def _choice(*choices: str, default: str | None = None, meaning: str) -> Any:
    legal = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return _setting(default or choices[0], Rule(str, choices.__contains__, legal, meaning))


def _number(default: float, minimum: int, maximum: int, meaning: str) -> Any:
    legal = f"{'a whole number' if isinstance(default, int) else 'seconds'} from {minimum} to {maximum}"
    return _setting(default, Rule(type(default), lambda n: minimum <= n <= maximum, legal, meaning))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the service; `Settings()` holds the defaults."""

    database_url: str = _text(
        "sqlite:///var/espalier.db",
        rf"sqlite:///[^:?\s]([^?\n]*[^?\s])?|{POSTGRES_URL}",
        "sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME, special characters encoded (@ as %40)",
        "the database; the folder of an SQLite file is created",
        secret=True,
    )
    host: str = _setting(
        "127.0.0.1", Rule(str, _is_host, "a host name or an IP address", "the address that the web server listens on")
    )
    port: int = _number(8080, 1, 65535, "the port that the web server listens on")
    auth: str = _choice("none", "keys", meaning="whether callers need a key; none: HOST must be a loopback address")
    admin_key: str = _text(
        "random",
        f"random|{TOKEN.pattern}",
        "random, or esp_UUID_SECRET: a UUID in lower case, and 43 to 128 of the characters A-Z a-z 0-9 _ -",
        "the first key, created if keys are on and there is no key yet; a random one is printed once",
        secret=True,
    )
    session_secret: str = _text(
        "random",
        r"random|\S{32,}",
        "random, or at least 32 characters without spaces",
        "signs the cookies of logins; with random, logins end at a restart and are valid on one host only",
        secret=True,
    )
    proxies: int = _number(0, 0, 10, "number of proxies before the service; their X-Forwarded-* headers are trusted")
    path_prefix: str = _text("/", f"/|{PATH_PREFIX}", "/ or a path such as /trees", "the prefix of all paths")
    cors_origins: str = _text(
        "none",
        rf"none|{ORIGIN}(,{ORIGIN})*",
        "none, or origins such as https://app.example separated by commas",
        "origins whose pages may call the service from a browser",
    )
    web_workers: int = _number(2, 1, 256, "number of web processes")
    web_threads: int = _number(16, 1, 512, "threads of each web process")
    log_format: str = _choice(
        "auto", "json", "text", meaning="format of log lines; auto: text on a terminal, else json"
    )
    log_level: str = _choice(
        "debug", "info", "warning", "error", default="warning", meaning="the lowest level of lines that are written"
    )
    log_requests: str = _choice("off", "on", meaning="whether each request writes a log line, at the level info")
    metrics: str = _choice("on", "off", meaning="whether metrics are counted, and served at /metrics")
    traces: str = _choice(
        "off", "on", meaning="whether spans of requests and jobs are sent; OTEL_* variables say where"
    )
    lease_seconds: float = _number(15.0, 1, MAX_LEASE_SECONDS, "time until another worker claims a lost worker's job")
    job_seconds: float = _number(3600.0, 1, 604800, "time limit of one attempt at a job")
    job_memory_mb: int = _number(
        4096, 64, 1048576, "memory limit of one attempt at a job, in MiB, without mapped files"
    )
    work: str = _text(
        "system",
        r"system|/.*",
        "system (the folder of temporary files), or the absolute path of a folder",
        "the folder for training tables that stay on disk; workers of a Dask cluster need it at the same path",
    )
    store: str = _text(
        "none",
        r"none|file:///\S+|s3://\S+",
        "none, file:///FOLDER or s3://BUCKET/PREFIX, with options of pyarrow.fs such as ?region=eu-central-1",
        "the folder or bucket of Parquet files that data sets may refer to; AWS_* variables give access to a bucket",
        secret=True,
    )
    dask: str = _text(
        "none",
        r"none|(tcp|tls)://[^\s/]+:[0-9]{1,5}",
        "none, or the address of a scheduler such as tcp://scheduler:8786",
        "the Dask cluster whose workers search for splits in tables that stay on disk",
    )
    job_attempts: int = _number(3, 1, 20, "number of attempts at a job before its state is dead")
    decisions: str = _choice(
        "durable", "best_effort", "off", meaning="when to log decisions: before the response, later, or by jobs only"
    )
    retention_days: int = _number(
        0, 0, 36500, "days that decisions are kept, unless the model has its own number of days; 0: for ever"
    )
    job_days: int = _number(0, 0, 36500, "days that ended jobs are kept; 0: for ever")
    replay_seconds: float = _number(86400.0, 60, 604_800, "how long the response for an Idempotency-Key is stored")
    max_body_mb: int = _number(64, 1, 4096, "largest body in MiB, except a file of rows or a table that is not JSON")
    max_upload_mb: int = _number(1024, 1, 1048576, "largest file of rows or non-JSON table in MiB, also decompressed")
    max_rows: int = _number(2_000_000, 1, 100_000_000, "row limit of an uploaded table, or of a file of rows")
    max_columns: int = _number(2_000, 1, 100_000, "column limit of a data set")
    max_cells: int = _number(100_000_000, 1, 10_000_000_000, "limit of rows times columns of an uploaded table")
    max_cell_chars: int = _number(10_000, 1, MAX_CELL_CHARS, "longest text in a cell, in characters")
    reader_memory_mb: int = _number(
        1024, 512, 1048576, "memory limit in MiB for reading Parquet, Arrow or JSON, or for changing a schema"
    )
    max_nodes: int = _number(1_000_000, 1, 100_000_000, "limit of a model: its nodes, or its rules plus conditions")
    max_jobs: int = _number(1_000, 1, 1_000_000, "limit of unfinished jobs of one key")
    max_requests: int = _number(0, 0, 1_000_000, "limit of requests per second, per key and web process; 0: no limit")
    max_predict_rows: int = _number(10_000, 1, 1_000_000, "row limit of a prediction request without a file of rows")
    max_full_nodes: int = _number(
        2_000_000,
        1,
        1_000_000_000,
        "limit for one request, on each of: rows times nodes (explain: full); rows times levels (explain: path); over "
        "all rows that take several branches, the sum of the steps, or of the paths (explain: none). For a "
        "model with c classes, the limit of levels, steps and paths is divided by 1 + c // 10",
    )

    @classmethod
    def from_env(cls) -> "Settings":
        """Read the settings from the environment; an empty variable is unset. Raise `SettingsError` with all errors."""
        given: dict[str, Any] = {}
        faults = []
        for variable in variables():
            text, rule = os.environ.get(variable.name), variable.rule
            if not text:
                continue
            try:
                given[variable.field] = rule.read(text.encode().decode())  # raises if it is not UTF-8
                is_legal = rule.is_legal(given[variable.field])
            except ValueError:
                is_legal = False
            if not is_legal:
                shown = "what was given is not legal" if rule.secret else f"given {text!r}"
                faults.append(f"{variable.name}: {shown}; legal: {rule.legal}")
        if faults:
            raise SettingsError(faults)
        return cls(**given)

    @property
    def database_file(self) -> Path | None:
        """The SQLite file as an absolute path; None for another database."""
        if not self.database_url.startswith(SQLITE_FILE):
            return None
        return Path(self.database_url.removeprefix(SQLITE_FILE)).absolute()

    @property
    def work_folder(self) -> Path:
        """The folder for training tables that stay on disk, and for the temporary files of registering store files."""
        return Path(tempfile.gettempdir() if self.work == "system" else self.work)

    @property
    def shared_with(self) -> frozenset[str]:
        """The origins whose pages may call the service, as browsers send them: in lower case, without default ports."""
        origins = self.cors_origins.lower().split(",") if self.cors_origins != "none" else ()
        return frozenset(re.sub("^(https:.*):443$|^(http:.*):80$", r"\1\2", origin) for origin in origins)


def as_text(value: object) -> str:
    """Return the value of a setting as text, in the form that `from_env` reads."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def variables() -> tuple[Variable, ...]:
    """Return every environment variable of the service, in the order of the fields."""
    return tuple(
        Variable(PREFIX + item.name.upper(), item.name, as_text(item.default), item.metadata["rule"])
        for item in fields(Settings)
    )


def unknown_variables() -> tuple[str, ...]:
    """Return the variables ESPALIER_… of the environment that nothing reads; they are probably misspelled."""
    known = {variable.name for variable in variables()}
    given = {name for name in os.environ if name.startswith(PREFIX) and not READ_ELSEWHERE.fullmatch(name)}
    return tuple(sorted(given - known))


def check_listening(settings: Settings, host: str | None = None) -> None:
    """Raise `SettingsError` if keys are off and `is_loopback` is false for `host` (default: `settings.host`)."""
    host = settings.host if host is None else host
    if settings.auth == "none" and not is_loopback(host):
        message = (
            f"{PREFIX}HOST: given {host!r}, but without keys ({PREFIX}AUTH=none) the service listens only "
            f"on this machine; legal: 127.0.0.1, ::1 or localhost, or any address with {PREFIX}AUTH=keys"
        )
        raise SettingsError([message])


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address or the name localhost, which only this machine can reach."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
