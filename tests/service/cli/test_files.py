"""Files that commands write."""

import os
import threading
from pathlib import Path

import pytest

from service.cli import Refused
from service.cli.files import write_whole


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"model")
    reader.join()
    assert (read, pipe.is_fifo()) == ([b"model"], True)


def test_a_folder_is_refused_and_stays(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written"):
        write_whole(tmp_path, b"model")
    assert tmp_path.is_dir()
    assert list(tmp_path.iterdir()) == []
