"""Who may come in: host names, origins, the token, and the headers of every answer."""

from __future__ import annotations

import pytest

from selftrain_lite import Model
from served import ask, client_of

TOKEN = "correct-horse-battery"
PAGES = ("/", "/docs", "/page/page.js", "/openapi.json", "/info", "/metrics", "/nothing")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost:9", "LOCALHOST", "[::1]:8080", "10.0.0.7"]
)
def test_this_machine_and_addresses_in_numbers_are_known(model: Model, host: str) -> None:
    with client_of(model) as client:
        assert client.get("/info", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:8080", "", "127.0.0.1.nip.io", "a:b", "a b"]
)
def test_another_host_name_is_refused(model: Model, host: str) -> None:
    with client_of(model) as client:
        response = client.get("/health", headers={"Host": host})
        assert response.status_code == 421
        assert response.json() == {
            "error": "this server does not answer to that host name; see --allow-host",
            "error_type": "Misdirected",
        }


def test_a_name_of_the_list_is_known_and_a_star_is_any(model: Model) -> None:
    with client_of(model, names=("Models.example",)) as client:
        assert client.get("/info", headers={"Host": "models.example:80"}).status_code == 200
        assert client.get("/info", headers={"Host": "other.example"}).status_code == 421
    with client_of(model, names=("*",), token=TOKEN) as client:
        assert client.get("/health", headers={"Host": "other.example"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8080"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_may_not_ask(model: Model, headers: dict[str, str]) -> None:
    with client_of(model) as client:
        for address in ("/predict", "/v2/models/film-reviews/infer"):
            response = client.post(address, json={"inputs": "great"}, headers=headers)
            assert response.status_code == 403
            assert response.json()["error"] == "a page of another origin may not ask"


def test_our_page_and_programs_may_ask(model: Model) -> None:
    ours = {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}
    with client_of(model) as client:
        assert ask(client, "great", headers=ours) == ask(client, "great")


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"],
)
def test_without_the_right_token_nothing_of_the_model_is_said(model: Model, value: str) -> None:
    headers = {"Authorization": value.encode("latin-1")}
    with client_of(model, token=TOKEN) as client:
        for method, address in (
            ("POST", "/predict"),
            ("GET", "/info"),
            ("GET", "/metrics"),
            ("GET", "/v2/models/film-reviews"),
            ("GET", "/nothing"),
        ):
            response = client.request(method, address, headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.json()["error"] == "a bearer token is needed, and this is none"
            assert "film" not in response.text


def test_with_the_token_all_is_open_and_probes_need_none(model: Model) -> None:
    with client_of(model, token=TOKEN) as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert ask(client, "great", headers=headers)[0]["label"] == "positive"
        assert client.get("/info", headers=headers).status_code == 200
        for address in ("/health", "/v2/health/live", "/v2/health/ready", "/", "/docs"):
            assert client.get(address).status_code == 200


@pytest.mark.parametrize("address", PAGES)
def test_every_answer_has_the_headers_that_protect_a_page(model: Model, address: str) -> None:
    with client_of(model) as client:
        headers = client.get(address).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe-inline" not in policy or address == "/docs"
    assert "access-control-allow-origin" not in headers
