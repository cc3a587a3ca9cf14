"""Whether a graph has all of its tensors in itself, before onnxruntime opens it.

A tensor of a graph may name another file instead of holding its numbers (``external_data``), and
onnxruntime would read that file, which could be any of this machine. So the few fields of ONNX that
lead from a model to its tensors are followed, and nothing else is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap

TO_TENSORS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {
        **{5: "tensor", 6: "graph", 22: "sparse tensor"},
        **{10: "tensor", 11: "graph", 23: "sparse tensor"},  # lists of them
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
}
"""For each message of onnx.proto: the fields with a tensor somewhere inside, and what they hold."""
EXTERNAL_DATA, DATA_LOCATION = 13, 14  # fields of a tensor
INSIDE = b"\0"
"""The location of data that the tensor holds itself."""
NUMBER, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5  # kinds of fields in protobuf


def names_other_files(content: bytes | mmap) -> bool:
    """Whether some tensor of a model is stored elsewhere; a ValueError where it is no protobuf.

    The order of fields does not matter, nor does what a name or a text in the graph says.
    """
    messages = [("model", 0, len(content))]
    while messages:
        kind, start, end = messages.pop()
        for field, first, after in fields(content, start, end):
            if kind == "tensor":
                outside = field == DATA_LOCATION and content[first:after] != INSIDE
                if outside or field == EXTERNAL_DATA:
                    return True
            elif inner := TO_TENSORS[kind].get(field):
                messages.append((inner, first, after))
    return False


def fields(content: bytes | mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The number of each field of a message, and where its value starts and ends."""
    while start < end:
        tag, start = number_at(content, start, end)
        kind = tag & 7
        if kind == NUMBER:
            after = number_at(content, start, end, plain=False)[1]
        elif kind == BYTES:
            size, start = number_at(content, start, end)
            after = start + size
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            after = start + (8 if kind == EIGHT_BYTES else 4)
        else:
            raise ValueError(f"the byte before {start:,} starts no field")
        if after > end:
            raise ValueError(f"a field at {start:,} has no end")
        yield tag >> 3, start, after
        start = after


def number_at(
    content: bytes | mmap, start: int, end: int, *, plain: bool = True
) -> tuple[int, int]:
    """A number that is stored seven bits a byte, and the place after it.

    ``plain``: in as few bytes as it needs and no more than 32 bits, as every program writes tags
    and sizes. Programs read others in different ways, so a file could be two graphs.
    """
    number = 0
    for place in range(start, min(start + 10, end)):
        byte = content[place]
        number |= (byte & 127) << 7 * (place - start)
        if byte < 128:
            if plain and (number >> 32 or (byte == 0 and place > start)):
                break
            return number, place + 1
    raise ValueError(f"the number at {start:,} is not written plainly")
