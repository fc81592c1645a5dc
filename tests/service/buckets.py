"""A real S3 server: moto, in a process of its own, for stores of tests."""

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs, parquet

from tests.service.waiting import until

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_EC2_METADATA_DISABLED": "true"}


@dataclass(frozen=True)
class Root:
    """A folder or a bucket that a test writes into; `url` is the setting of the service."""

    url: str
    system: fs.FileSystem
    path: str

    def write(self, name: str, table: Any, **options: Any) -> None:
        self.system.create_dir(f"{self.path}/{name}".rpartition("/")[0])
        parquet.write_table(table, f"{self.path}/{name}", filesystem=self.system, **options)

    def read(self, name: str) -> bytes:
        with self.system.open_input_file(f"{self.path}/{name}") as file:
            return bytes(file.read())

    def put(self, name: str, content: bytes) -> None:
        with self.system.open_output_stream(f"{self.path}/{name}") as file:
            file.write(content)

    def delete(self, name: str) -> None:
        self.system.delete_file(f"{self.path}/{name}")

    def take_away(self) -> None:
        self.system.delete_dir_contents(self.path)
        self.system.delete_dir(self.path)


def to_parquet(table: Any) -> io.BytesIO:
    file = io.BytesIO()
    parquet.write_table(table, file)
    return io.BytesIO(file.getvalue())


def in_folder(folder: Path) -> Root:
    folder.mkdir()
    return Root(folder.as_uri(), fs.LocalFileSystem(), str(folder))


@dataclass
class S3Server:
    process: subprocess.Popen[bytes]
    port: int
    n_buckets: int = 0

    def bucket(self) -> Root:
        """Make an empty bucket."""
        self.n_buckets += 1
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        name = f"tables{self.n_buckets}"
        writer, path = fs.FileSystem.from_uri(
            f"s3://{name}?{options}&allow_bucket_creation=true&allow_bucket_deletion=true"
        )
        writer.create_dir(name)
        return Root(f"s3://{name}?{options}", writer, path)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run moto on a free port; `folder` gets its log."""
    command = [sys.executable, "-u", "-m", "moto.server", "--host", "127.0.0.1", "--port", "0"]
    log = folder / "moto.log"
    with pytest.MonkeyPatch.context() as patch, log.open("w") as file:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            address = until(lambda: re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text()), what="the start of moto")
            yield S3Server(process, int(address[1]))
        finally:
            process.kill()
            process.wait()
