"""compose.cluster.yaml and the Kubernetes example against the code: settings, folders, and commands that run."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import distributed
import pytest
import yaml

import espalier
from service.cli.__main__ import COMMANDS
from service.settings import Settings, variables
from tests.dask_cluster import processes
from tests.deployed import compose
from tests.documentation.pages import text_of
from tests.factories import ROOT

PAGE = text_of("operations/cluster.md")
SETTINGS = {variable.name for variable in variables()}
FILES = ("compose", "kubernetes")


@dataclass(frozen=True)
class Container:
    """What a file says of a container: the words that it runs, its variables, and volumes by their paths."""

    words: list[str]
    environment: dict[str, str]
    volumes: dict[str, str]
    replicas: int


def containers(file: str) -> dict[str, Container]:
    """Return the containers of a file by the part that they have."""
    return dict(_of_compose() if file == "compose" else _of_kubernetes())


def _of_compose() -> Iterator[tuple[str, Container]]:
    read = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())
    for name, service in read["services"].items():
        whole = compose()["services"].get(name, {}) | service
        volumes = {path: volume for volume, _, path in (each.partition(":") for each in whole.get("volumes", []))}
        assert set(volumes.values()) <= read["volumes"].keys()
        words = [*whole.get("entrypoint", ["espalier"]), *whole["command"]]
        replicas = whole.get("deploy", {}).get("replicas", 1)
        yield name, Container(words, whole.get("environment", {}), volumes, replicas)


def manifests() -> list[dict[str, Any]]:
    [block] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return list(yaml.safe_load_all(block))


def _of_kubernetes() -> Iterator[tuple[str, Container]]:
    claims = {each["metadata"]["name"] for each in manifests() if each["kind"] == "PersistentVolumeClaim"}
    for manifest in manifests():
        if manifest["kind"] not in {"Deployment", "Job"}:
            continue
        pod = manifest["spec"]["template"]["spec"]
        volumes = {each["name"]: each for each in pod.get("volumes", [])}
        assert pod["enableServiceLinks"] is False
        for volume in volumes.values():
            assert volume.get("persistentVolumeClaim", {}).get("claimName", "espalier-work") in claims
        [one] = pod["containers"]
        assert {each["name"] for each in one.get("volumeMounts", [])} == volumes.keys()
        yield (
            one["name"],
            Container(
                one.get("command", ["espalier"]) + one.get("args", []),
                {each["name"]: each["value"] for each in one.get("env", [])},
                {each["mountPath"]: each["name"] for each in one.get("volumeMounts", [])},
                manifest["spec"].get("replicas", 1),
            ),
        )


@pytest.mark.parametrize("file", FILES)
def test_the_worker_of_jobs_has_legal_settings_and_a_folder_that_the_cluster_has_too(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = containers(file)
    worker, of_cluster = every["worker"], every["dask-worker"]
    assert worker.environment.keys() <= SETTINGS
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in worker.environment.items():
        monkeypatch.setenv(name, value)
    settings = Settings.from_env()
    assert settings.dask in of_cluster.words
    assert worker.volumes[settings.work] == of_cluster.volumes[settings.work]
    assert of_cluster.volumes[of_cluster.words[of_cluster.words.index("--local-directory") + 1]]
    assert of_cluster.replicas == 3


def test_the_scheduler_is_called_as_its_workers_call_it_and_only_they_reach_it() -> None:
    read = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())["services"]
    assert containers("compose")["worker"].environment["ESPALIER_DASK"] == "tcp://scheduler:8786"
    assert read["scheduler"]["networks"] == read["dask-worker"]["networks"] == ["cluster"]
    assert read["worker"]["networks"] == ["default", "cluster"]
    [service] = [each for each in manifests() if each["kind"] == "Service"]
    [deployment] = [
        each for each in manifests() if each["spec"].get("selector") == {"matchLabels": service["spec"]["selector"]}
    ]
    assert deployment["metadata"]["name"] == service["metadata"]["name"]
    address = containers("kubernetes")["worker"].environment["ESPALIER_DASK"]
    assert address == f"tcp://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    policies = [each["spec"]["podSelector"]["matchLabels"] for each in manifests() if each["kind"] == "NetworkPolicy"]
    assert policies == [{"app": "espalier-scheduler"}, {"app": "espalier-dask-worker"}]


def test_a_table_is_learned_from_by_the_cluster_that_the_commands_start(tmp_path: Path) -> None:
    started = []
    for file in FILES:
        every = containers(file)
        for one in every.values():
            assert one.words[0] == "dask" or one.words[1] in COMMANDS
        assert every["scheduler"].words[:2] == ["dask", "scheduler"]
        dask, command, address, *options = every["dask-worker"].words
        assert (dask, command) == ("dask", "worker")
        assert address.startswith("tcp://")
        options[options.index("--local-directory") + 1] = str(tmp_path)
        started.append((every["scheduler"].words[2:], options))
    assert started[0] == started[1]  # so that one cluster shows it for both files
    scheduler, worker = started[0]
    with processes(scheduler=scheduler, worker=worker) as (own, _):
        _check_training(tmp_path, own)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_with_certificates_as_the_page_says_the_cluster_is_reached_and_without_it_is_not(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*making, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    environment = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    environment["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(certificate)
    for part in ("SCHEDULER", "WORKER", "CLIENT"):
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{part}__CERT"] = str(certificate)
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{part}__KEY"] = str(key)
        assert f"__{part}__CERT`" in PAGE
    assert all(name in PAGE for name in environment if not name.endswith(("CERT", "KEY")))
    security = distributed.Security(
        tls_ca_file=str(certificate), tls_client_cert=str(certificate), tls_client_key=str(key), require_encryption=True
    )
    given = {"scheduler": ("--no-dashboard", "--protocol", "tls"), "environment": environment, "security": security}
    with processes(n_workers=1, **given) as (address, _):
        assert address.startswith("tls://")
        _check_training(tmp_path, address, environment)
        refused = _train(tmp_path, address, {})
        assert (refused.returncode != 0, "needs certificates" in refused.stderr) == (True, True)


def _check_training(folder: Path, address: str, environment: dict[str, str] | None = None) -> None:
    table = folder / "table.csv"
    table.write_text("a,b,y\n" + "".join(f"{n * 37 % 101},{n * 53 % 97},{'pqr'[n * n % 3]}\n" for n in range(600)))
    done = _train(folder, address, environment or {})
    assert done.returncode == 0, done.stderr
    expected = espalier.train(espalier.dataset_from_file(table, target="y"), "cart")
    assert (folder / "model.json").read_bytes() == espalier.to_json(expected)


def _train(folder: Path, address: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = ["train", str(folder / "table.csv"), "--target", "y", "--out-of-core", "--work", str(folder / "work")]
    command = [sys.executable, "-m", "service.cli", *words, "--cluster", address, "--out", str(folder / "model.json")]
    given = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)
