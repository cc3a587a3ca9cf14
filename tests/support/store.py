"""A store of objects on this machine: moto's S3 on loopback, and one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest
import s3fs
from moto.server import ThreadedMotoServer

BUCKET = "texts"


@contextmanager
def s3_on_loopback() -> Iterator[Any]:
    """A file system of s3fs with an empty bucket; nothing leaves this machine."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "none")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "none")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        s3fs.S3FileSystem.clear_instance_cache()
        store = fsspec.filesystem("s3")
        store.mkdir(BUCKET)
        try:
            yield store
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
            server.stop()
