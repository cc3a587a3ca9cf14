"""A graph that keeps tensors in other files is refused, however its bytes are put."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

import lite_folder
from selftrain_lite import LiteError, load
from selftrain_lite.graph import TO_TENSORS, names_other_files

NAMES = {
    "ModelProto": "model",
    "TrainingInfoProto": "training",
    "FunctionProto": "function",
    "GraphProto": "graph",
    "NodeProto": "node",
    "AttributeProto": "attribute",
    "SparseTensorProto": "sparse tensor",
    "TensorProto": "tensor",
}


def field(number: int, content: bytes) -> bytes:
    """A field of protobuf that holds bytes."""
    assert len(content) < 2**14
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    low = bytes([number & 127 | 128 * (number > 127)])
    return low + (bytes([number >> 7]) if number > 127 else b"")


KEY, VALUE = field(1, b"location"), field(2, b"other.bin")
OUTSIDE = bytes([14 << 3, 1])
TABLE = bytes([8, 11, 8, 2, 16, 1]) + field(8, b"table")  # 11 rows of two numbers
ENTRIES = {
    "key first": field(13, KEY + VALUE) + OUTSIDE,
    "value first": field(13, VALUE + KEY) + OUTSIDE,
    "two keys": field(13, field(1, b"x") + VALUE + KEY) + OUTSIDE,
    "location first": OUTSIDE + field(13, VALUE + KEY),
    "a long length": field(13, VALUE + b"\x0a\x88\x00location") + OUTSIDE,
    "a long tag": field(13, VALUE + b"\x8a\x00\x08location") + OUTSIDE,
    "a long location": field(13, VALUE + KEY) + bytes([14 << 3, 0x81, 0x00]),
    "a location alone": OUTSIDE,
    "an entry alone": field(13, VALUE + KEY),
}


def with_table(tensor: bytes) -> bytes:
    """The usual graph with another table, behind whose back no library puts fields in order."""
    model = onnx.load_from_string(lite_folder.graph())
    del model.graph.initializer[0]
    content = model.SerializeToString()
    return content + field(7, field(5, tensor))  # a second graph is merged into the first


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_a_graph_with_tensors_in_another_file_is_refused(tmp_path: Path, entry: bytes) -> None:
    folder = lite_folder.write(tmp_path / "model", with_table(TABLE + entry))
    (folder / "onnx" / "other.bin").write_bytes(lite_folder.table().tobytes())
    with pytest.raises(LiteError, match="names other files for its tensors"):
        load(folder)


@pytest.mark.parametrize("long", [b"\xba\x00", b"\xba\x80\x80\x80\x10"])
def test_a_tag_that_programs_read_in_different_ways_is_refused(tmp_path: Path, long: bytes) -> None:
    content = with_table(TABLE + ENTRIES["value first"])
    start = content.rindex(bytes([7 << 3 | 2]), 0, content.rindex(TABLE))
    content = content[:start] + long + content[start + 1 :]
    with pytest.raises(LiteError, match="is not written plainly"):
        load(lite_folder.write(tmp_path / "model", content))


def test_a_table_in_the_graph_is_read(tmp_path: Path) -> None:
    inside = TABLE + field(9, lite_folder.table().tobytes()) + bytes([14 << 3, 0])
    model = load(lite_folder.write(tmp_path / "model", with_table(inside)))
    assert model.predict(["good", "bad"]) == ["good", "bad"]


def hidden(place: str) -> onnx.ModelProto:
    """A graph with a tensor in another file, at an unusual place."""
    model = onnx.load_from_string(lite_folder.graph())
    tensor = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    node = model.graph.node.add(op_type="Constant")
    match place:
        case "a node":
            node.attribute.add(name="value").t.CopyFrom(tensor)
        case "a list of a node":
            node.attribute.add(name="value").tensors.append(tensor)
        case "a graph of a node":
            inner = node.attribute.add(name="body").g.node.add(op_type="If")
            inner.attribute.add(name="then").graphs.add().initializer.append(tensor)
        case "sparse numbers":
            model.graph.sparse_initializer.add().indices.CopyFrom(tensor)
        case "a function":
            model.functions.add().node.add().attribute.add(name="value").t.CopyFrom(tensor)
        case "training":
            model.training_info.add().algorithm.initializer.append(tensor)
    return model


PLACES = [
    *("a node", "a list of a node", "a graph of a node"),
    *("sparse numbers", "a function", "training"),
]


@pytest.mark.parametrize("place", PLACES)
def test_tensors_are_found_wherever_they_stand(place: str) -> None:
    assert names_other_files(hidden(place).SerializeToString())


def test_a_name_or_a_word_location_is_no_other_file() -> None:
    model = onnx.load_from_string(lite_folder.graph())
    model.graph.node.add(op_type="Identity", input=["location"], output=["location"])
    model.graph.initializer.add(
        name="location", data_type=onnx.TensorProto.STRING, string_data=[b"location", KEY + VALUE]
    )
    model.metadata_props.add(key="location", value="other.bin")
    assert not names_other_files(model.SerializeToString())


def leading_to_tensors() -> Iterator[tuple[str, dict[int, str]]]:
    """By onnx.proto: the fields of each message that hold a tensor, however deep."""
    messages: dict[str, Descriptor] = {}
    waiting = [onnx.ModelProto.DESCRIPTOR]
    while waiting:
        message = waiting.pop()
        if message.name not in messages:
            messages[message.name] = message
            waiting += [each.message_type for each in message.fields if each.message_type]
    leads: Callable[[FieldDescriptor], bool] = lambda each: (  # noqa: E731
        each.message_type is not None and each.message_type.name in found
    )
    found = {"TensorProto"}
    while more := {n for n, m in messages.items() if any(map(leads, m.fields))} - found:
        found |= more
    for name in found - {"TensorProto"}:
        fields = filter(leads, messages[name].fields)
        yield NAMES[name], {each.number: NAMES[each.message_type.name] for each in fields}


def test_the_fields_that_lead_to_a_tensor_are_those_of_onnx() -> None:
    assert dict(leading_to_tensors()) == TO_TENSORS
