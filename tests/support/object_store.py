"""Object storage on this machine: moto's S3 behind HTTP on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import fsspec
import pytest
import s3fs
from moto.server import ThreadedMotoServer


@contextmanager
def s3_on_loopback(bucket: str) -> Iterator[Any]:
    """A file system of s3fs with an empty bucket; credentials are in the environment."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        s3fs.S3FileSystem.clear_instance_cache()
        store = fsspec.filesystem("s3")
        store.mkdir(bucket)
        try:
            yield store
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
            server.stop()


@pytest.fixture
def object_store() -> Iterator[str]:
    """The address of an empty bucket, ``s3://…``: a new one, servers share what they hold."""
    bucket = f"bucket-{uuid4()}"
    with s3_on_loopback(bucket):
        yield f"s3://{bucket}"
