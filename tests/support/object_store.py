"""Object storage on this machine: moto's S3 behind HTTP, with an empty bucket for each test."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest


@pytest.fixture
def object_store(monkeypatch) -> Iterator[str]:
    """The address of an empty bucket, ``s3://…``; credentials are in the environment."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    bucket = f"bucket-{uuid4()}"  # a new one: the servers of a process share what they hold
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir(bucket)
    yield f"s3://{bucket}"
    server.stop()
