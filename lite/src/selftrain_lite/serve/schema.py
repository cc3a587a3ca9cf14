"""What the page of the interface says of requests and answers (OpenAPI)."""

from __future__ import annotations

from typing import Any

STRING: dict[str, Any] = {"type": "string"}
ERROR = {
    "type": "object",
    "properties": {"error": STRING, "error_type": STRING},
    "required": ["error", "error_type"],
}
SCORES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"label": STRING, "score": {"type": "number"}},
        "required": ["label", "score"],
    },
}
REASONS = {
    400: "an empty list",
    401: "no token, or a wrong one",
    403: "a page of another origin",
    408: "a request that does not end",
    413: "too many bytes, texts, or characters in a text",
    421: "another host name",
    422: "not JSON, or of another shape",
    424: "a text that the model cannot answer",
    429: "too many texts wait",
    503: "the server is about to end",
}

PREDICT = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "inputs": {
            "oneOf": [
                STRING,
                {"type": "array", "items": STRING, "minItems": 1, "maxItems": 2},
                {
                    "type": "array",
                    "items": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 2},
                },
            ]
        }
    },
}
TENSOR = {
    "type": "object",
    "required": ["name", "datatype", "shape", "data"],
    "properties": {
        "name": STRING,
        "datatype": {"type": "string", "enum": ["BYTES"]},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "data": {"type": "array", "items": STRING},
    },
}
INFER = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": STRING,
        "inputs": {"type": "array", "items": TENSOR},
        "outputs": {"type": "array", "items": {"type": "object", "properties": {"name": STRING}}},
    },
}


def body(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    """The body of a request, for ``openapi_extra``."""
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def answers(schema: dict[str, Any], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What may come back, for ``responses``."""
    found: dict[int | str, dict[str, Any]] = {
        200: {"description": "the answer", "content": {"application/json": {"schema": schema}}}
    }
    for status in statuses:
        error = {"application/json": {"schema": ERROR}}
        found[status] = {"description": REASONS[status], "content": error}
    return found
