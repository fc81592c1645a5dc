"""A real S3 server: moto, in a process of its own, for stores of tests."""

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs, parquet

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


def in_folder(folder: Path) -> Root:
    folder.mkdir()
    return Root(folder.as_uri(), fs.LocalFileSystem(), str(folder))


@dataclass
class S3Server:
    process: subprocess.Popen[str]
    port: int
    n_buckets: int = 0

    def bucket(self) -> Root:
        """Make an empty bucket."""
        self.n_buckets += 1
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        name = f"tables{self.n_buckets}"
        writer, path = fs.FileSystem.from_uri(f"s3://{name}?{options}&allow_bucket_creation=true&allow_bucket_deletion=true")
        writer.create_dir(name)
        return Root(f"s3://{name}?{options}", writer, path)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run moto on a free port."""
    command = [sys.executable, "-u", "-m", "moto.server", "--host", "127.0.0.1", "--port", "0"]
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    server = S3Server(process, 0)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                server.port = int(found[1])
                break
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/moto-api/").close()  # noqa: S310
        yield server
    finally:
        server.stop()
        process.stderr.close()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
