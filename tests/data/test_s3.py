"""Pools in S3, by moto's server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import s3fs
from test_remote import PARTS, check_reads, refused, streamed

from formats import as_csv
from object_store import s3_on_loopback
from selftrain.data.read import read_unlabelled
from selftrain.data.rows import Notes
from selftrain.errors import DataError

__all__ = ["streamed"]
pytestmark = pytest.mark.slow
BUCKET = "texts"


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    with s3_on_loopback(BUCKET) as store:
        for name, raw in PARTS.items():
            store.pipe_file(f"{BUCKET}/{name}", raw)
        yield store


@pytest.mark.usefixtures("streamed", "s3")
def test_files_of_s3_are_read_like_files_here() -> None:
    check_reads(f"s3://{BUCKET}")


@pytest.mark.usefixtures("streamed")
def test_an_object_that_changes_between_two_reads_is_an_error(s3: Any) -> None:
    s3.pipe_file(f"{BUCKET}/changing.csv", as_csv([{"text": "a"}]))
    pool = read_unlabelled(f"s3://{BUCKET}/changing.csv", notes=Notes())
    s3.pipe_file(f"{BUCKET}/changing.csv", as_csv([{"text": "b"}]))  # as long, with another ETag
    with pytest.raises(DataError, match=r"changing\.csv changed while it was in use"):
        list(pool)


@pytest.mark.usefixtures("s3")
def test_a_missing_bucket_or_key_and_half_a_file_are_one_line_and_a_hint() -> None:
    for address in (f"s3://{BUCKET}/none.csv", "s3://no-such-bucket/a.csv"):
        message, hint = refused(address)
        assert message == f"{address} does not exist"
        assert "letter by letter" in hint
    assert "cannot be read as Parquet" in refused(f"s3://{BUCKET}/cut.parquet")[0]


@pytest.mark.usefixtures("s3")
def test_a_damaged_page_of_an_object_is_no_fault_of_the_store() -> None:
    message, hint = refused(f"s3://{BUCKET}/damaged.parquet")
    assert "damaged.parquet cannot be read as Parquet: Corrupt snappy" in message
    assert "copy it again" in hint


@pytest.mark.usefixtures("s3")
def test_without_credentials_the_hint_says_how_to_give_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3fs.S3FileSystem.clear_instance_cache()
    message, hint = refused(f"s3://{BUCKET}/labelled.csv")
    assert "no valid credentials were found" in message
    assert "AWS_PROFILE" in hint
    s3fs.S3FileSystem.clear_instance_cache()
