"""The settings of the service: one frozen value, read once from the environment.

`Settings.from_env()` is the only reader of `os.environ`. Each field is the variable `ESPALIER_` plus its name in
capitals; its default, its legal values and its meaning stand beside it, and nowhere else.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from service.errors import SettingsError

PREFIX = "ESPALIER_"
FOR_TESTS = re.compile("ESPALIER_(REFERENCE|TEST_.*)")  # read by the tests alone
LONGEST_CELL = 131_072  # characters that the standard library's reader of CSV takes
LONGEST_LEASE = 3600  # seconds that a silent worker may keep its job
SQLITE_FILE = "sqlite:///"
TOKEN = re.compile(
    r"esp_(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43,128})"
)
ORIGIN = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?"
DATABASE_URL = re.compile(r"sqlite:///[^:?\s][^?\s]*|postgresql\+psycopg://\S+")


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, the field it fills, default, legal values and meaning, as text."""

    name: str
    field: str
    default: str
    legal: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Rule:
    """What a variable may be: how its text is read, whether the result is legal, and both in words."""

    read: Callable[[str], Any]
    allows: Callable[[Any], bool]
    legal: str
    meaning: str
    secret: bool = False


def _text(pattern: str, legal: str, meaning: str, *, secret: bool = False) -> Mapping[str, Rule]:
    matches = re.compile(pattern)
    rule = Rule(
        read=str, allows=lambda text: bool(matches.fullmatch(text)), legal=legal, meaning=meaning, secret=secret
    )
    return {"rule": rule}


def _whole(minimum: int, maximum: int, meaning: str) -> Mapping[str, Rule]:
    legal = f"a whole number from {minimum} to {maximum}"
    return {"rule": Rule(read=int, allows=lambda n: minimum <= n <= maximum, legal=legal, meaning=meaning)}


def _seconds(minimum: float, maximum: float, meaning: str) -> Mapping[str, Rule]:
    legal = f"seconds from {minimum:g} to {maximum:g}"
    return {"rule": Rule(read=float, allows=lambda n: minimum <= n <= maximum, legal=legal, meaning=meaning)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set from outside; `Settings()` holds the defaults."""

    database_url: str = field(
        default="sqlite:///var/espalier.db",
        metadata=_text(
            DATABASE_URL.pattern,
            "sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME",
            "where everything is kept; the folder of an SQLite file is made",
            secret=True,
        ),
    )
    host: str = field(
        default="127.0.0.1",
        metadata=_text(r"\S+", "a host name or an IP address", "the address that the web server listens on"),
    )
    port: int = field(default=8080, metadata=_whole(1, 65535, "the port that the web server listens on"))
    auth: str = field(
        default="none",
        metadata=_text(
            "none|keys",
            "none or keys",
            "who may call: those with keys, or everybody on loopback (none)",
        ),
    )
    admin_key: str = field(
        default="random",
        metadata=_text(
            f"random|{TOKEN.pattern}",
            "random, or esp_, a UUID, _ and 43 to 128 of the signs A-Z a-z 0-9 _ -",
            "the first key where keys are on; a random one is printed once",
            secret=True,
        ),
    )
    proxies: int = field(default=0, metadata=_whole(0, 10, "proxies in front whose X-Forwarded-* headers are believed"))
    path_prefix: str = field(
        default="/",
        metadata=_text(r"/|(/[A-Za-z0-9._~-]+)+", "/ or a path such as /trees", "the path below which all paths lie"),
    )
    cors_origins: str = field(
        default="none",
        metadata=_text(
            rf"none|{ORIGIN}(,{ORIGIN})*",
            "none, or origins such as https://app.example separated by commas",
            "origins whose pages may call the service from a browser",
        ),
    )
    web_workers: int = field(default=2, metadata=_whole(1, 256, "web processes"))
    web_threads: int = field(default=16, metadata=_whole(1, 512, "threads of each web process"))
    web_pinning: str = field(
        default="off",
        metadata=_text("off|on", "off or on", "web processes each on one core: faster where little else runs"),
    )
    log_format: str = field(
        default="auto",
        metadata=_text(
            "auto|json|text", "auto, json or text", "form of log lines; auto: text on a terminal, else json"
        ),
    )
    log_level: str = field(
        default="warning",
        metadata=_text("debug|info|warning|error", "debug, info, warning or error", "how grave a line must be"),
    )
    log_requests: str = field(
        default="off", metadata=_text("off|on", "off or on", "a log line for every request, at the level info")
    )
    metrics: str = field(
        default="on", metadata=_text("on|off", "on or off", "whether figures are counted, and shown at /metrics")
    )
    traces: str = field(
        default="off",
        metadata=_text("off|on", "off or on", "whether spans of requests and jobs are sent, as OTEL_* say"),
    )
    lease_seconds: float = field(
        default=15.0,
        metadata=_seconds(1, LONGEST_LEASE, "how long a silent worker keeps its job before another takes it"),
    )
    job_seconds: float = field(default=3600.0, metadata=_seconds(1, 604800, "time limit of one attempt at a job"))
    job_memory_mb: int = field(
        default=4096, metadata=_whole(64, 1048576, "memory limit of one attempt at a job, in MiB resident")
    )
    job_attempts: int = field(default=3, metadata=_whole(1, 20, "attempts at a job before it is given up as dead"))
    decisions: str = field(
        default="durable",
        metadata=_text(
            "durable|best_effort|off",
            "durable, best_effort or off",
            "how answers are logged: before they go, behind, not",
        ),
    )
    retention_days: int = field(
        default=0,
        metadata=_whole(0, 36500, "days that decisions are kept, unless a model says; 0: all"),
    )
    job_days: int = field(default=0, metadata=_whole(0, 36500, "days that ended jobs are kept; 0: for ever"))
    replay_seconds: float = field(
        default=86400.0, metadata=_seconds(60, 604_800, "how long what an Idempotency-Key was answered is kept")
    )
    max_body_mb: int = field(default=64, metadata=_whole(1, 4096, "largest body, in MiB; of data sets only of JSON"))
    max_upload_mb: int = field(
        default=1024, metadata=_whole(1, 1048576, "largest data set or file of rows, in MiB, packed or not")
    )
    max_rows: int = field(default=2_000_000, metadata=_whole(1, 100_000_000, "most rows of a data set"))
    max_columns: int = field(default=2_000, metadata=_whole(1, 100_000, "most columns of a data set"))
    max_cells: int = field(
        default=100_000_000, metadata=_whole(1, 10_000_000_000, "most cells of a data set, rows times columns")
    )
    max_cell_chars: int = field(
        default=10_000, metadata=_whole(1, LONGEST_CELL, "longest text in a cell, in characters")
    )
    reader_memory_mb: int = field(
        default=1024,
        metadata=_whole(512, 1048576, "memory of a process that reads Parquet or Arrow, in MiB"),
    )
    max_nodes: int = field(default=1_000_000, metadata=_whole(1, 100_000_000, "most nodes of a tree that is kept"))
    max_jobs: int = field(default=1_000, metadata=_whole(1, 1_000_000, "most unfinished jobs of one key"))
    max_requests: int = field(
        default=0, metadata=_whole(0, 1_000_000, "most requests a second of one key, a process; 0: any")
    )
    max_predict_rows: int = field(default=10_000, metadata=_whole(1, 1_000_000, "most rows of one prediction request"))
    max_full_nodes: int = field(
        default=2_000_000,
        metadata=_whole(
            1,
            1_000_000_000,
            "most rows times nodes (explain=full), levels or steps (path)",
        ),
    )

    @classmethod
    def from_env(cls) -> "Settings":
        """Read every variable from the environment; an empty one counts as not set.

        Raises:
            SettingsError: one or more variables are not legal; all of them are listed.
        """
        from environs import Env  # noqa: PLC0415 - it loads marshmallow, which a job's process has no use for
        from environs.exceptions import EnvValidationError  # noqa: PLC0415 - as above

        env = Env(eager=False)
        given: dict[str, Any] = {}
        rules: dict[str, Rule] = {}
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            rules[name] = item.metadata["rule"]
            env.add_parser(name, _parser(rules[name]))  # under a name that environs has no parser of its own for
            if os.environ.get(name):
                given[item.name] = getattr(env, name)(name)
        try:
            env.seal()
        except EnvValidationError as error:
            raise SettingsError([_fault(name, rules[name]) for name in error.error_messages]) from None
        return cls(**given)

    @property
    def database_file(self) -> Path | None:
        """The SQLite file as an absolute path, or None for another database."""
        if not self.database_url.startswith(SQLITE_FILE):
            return None
        return Path(self.database_url.removeprefix(SQLITE_FILE)).absolute()

    @property
    def shared_with(self) -> frozenset[str]:
        """The origins whose pages may call the service."""
        return frozenset() if self.cors_origins == "none" else frozenset(self.cors_origins.split(","))


def variables() -> tuple[Variable, ...]:
    """Every environment variable of the service, in the order of the fields."""
    return tuple(
        Variable(
            name=PREFIX + item.name.upper(),
            field=item.name,
            default=f"{item.default:g}" if isinstance(item.default, float) else str(item.default),
            legal=item.metadata["rule"].legal,
            meaning=item.metadata["rule"].meaning,
        )
        for item in fields(Settings)
    )


def unknown_variables() -> tuple[str, ...]:
    """The names in the environment that begin as ours do and are none of ours: most likely slips of the pen."""
    known = {variable.name for variable in variables()}
    ours = {name for name in os.environ if name.startswith(PREFIX) and not FOR_TESTS.fullmatch(name)}
    return tuple(sorted(ours - known))


def check_listening(settings: Settings, host: str | None = None) -> None:
    """Refuse to listen where strangers could call without a key.

    Args:
        settings: Whether keys are on.
        host: Where a socket that is open already listens; None for the host of the settings.

    Raises:
        SettingsError: auth is none and the host is not a loopback address.
    """
    host = settings.host if host is None else host
    if settings.auth == "none" and not is_loopback(host):
        raise SettingsError(
            [
                f"{PREFIX}HOST: given {host!r}, but without keys ({PREFIX}AUTH=none) the service listens only "
                f"on this machine; legal: 127.0.0.1, ::1 or localhost, or any address with {PREFIX}AUTH=keys"
            ]
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; a name other than localhost is taken as not."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _parser(rule: Rule) -> Callable[[str], Any]:
    from environs import ValidationError  # noqa: PLC0415 - as above

    def parse(text: str) -> Any:
        try:
            value = rule.read(text)
        except ValueError:
            raise ValidationError(rule.legal) from None
        if not rule.allows(value):
            raise ValidationError(rule.legal)
        return value

    return parse


def _fault(name: str, rule: Rule) -> str:
    given = "what was given is not legal" if rule.secret else f"given {os.environ[name]!r}"
    return f"{name}: {given}; legal: {rule.legal}"
