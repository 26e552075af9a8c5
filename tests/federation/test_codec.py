"""The wire: exact round trips, and nothing malformed gets through."""

import contextlib
import json
import struct
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.kinds import own_messages
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fedlasso.governance  # noqa: F401  (its messages travel too)
from fedlasso import FedLassoError
from fedlasso.federation import Message, decode, encode
from fedlasso.federation.codec import seal, size
from fedlasso.federation.messages import layout
from fedlasso.procedures.averaging import LocalSweeps
from fedlasso.sites import CurvatureAt, FitAt, ValidationErrors
from fedlasso.sites.questions import FitSums

# Prints what becomes known only by importing more than what lets a site take part.
IMPORT_ALL = """
import importlib, pkgutil, fedlasso, fedlasso.deploy.doorkeeper
from fedlasso.federation.messages import TYPES
known = set(TYPES)
for module in pkgutil.walk_packages(fedlasso.__path__, "fedlasso."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(sorted(set(TYPES) - known), len(known))
"""
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def example(cls: type[Message], array: Any, number: float, count: int) -> Message:
    values: dict[str, Any] = {
        "array": array,
        "optional array": array if count % 2 else None,
        "whole array": np.arange(array.size).reshape(array.shape) - 2,
        "words": np.abs(array).astype(np.float64).view(np.uint64),
        "float": number,
        "int": count,
        "flag": count % 2 == 0,
        "text": "née",
        "texts": ("a", "b"),
        "note": 7,
    }
    return cls(**{name: values[kind] for name, kind in layout(cls)})


@settings(max_examples=40)
@given(
    array=hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0), elements=FINITE
    ),
    number=FINITE,
    count=st.integers(-(2**63), 2**63 - 1),
    data=st.data(),
)
def test_every_message_survives_the_wire_bit_for_bit(
    array: Any, number: float, count: int, data: st.DataObject
) -> None:
    cls = data.draw(st.sampled_from(list(own_messages().values())))
    message = example(cls, array, number, count)
    again = decode(encode(message))
    assert type(again) is cls
    assert sum(size(message)) == len(encode(message))
    for name, _ in layout(cls):
        sent, got = getattr(message, name), getattr(again, name)
        if isinstance(sent, np.ndarray):
            assert sent.shape == got.shape
            assert sent.tobytes() == got.tobytes()
        else:
            assert sent == got


def test_payload_is_eight_bytes_a_number_and_names_are_framing() -> None:
    sums = FitSums(np.ones(5), 1.0, 2.0, 3.0, site="a long name", steps=4, operations=5)
    assert size(sums)[0] == 8 * (5 + 3)
    longer = FitSums(np.ones(5), 1.0, 2.0, 3.0, site="a much longer name", steps=4, operations=5)
    assert size(longer)[0] == size(sums)[0]
    assert size(longer)[1] > size(sums)[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_do_not_travel(bad: float) -> None:
    with pytest.raises(FedLassoError, match="FitAt: b is not finite"):
        encode(FitAt(np.array([1.0, bad])))
    data = bytearray(encode(FitAt(np.array([1.0, 2.0]))))
    data[-8:] = struct.pack("<d", bad)
    with pytest.raises(FedLassoError, match="malformed message: b is not finite"):
        decode(bytes(data))


def test_a_message_that_was_read_or_sealed_keeps_its_bytes() -> None:
    request = FitAt(np.arange(3.0), number=5)
    data = encode(request)
    read = decode(data)
    assert encode(read) is data
    assert encode(replace(read)) == data
    sealed = seal(request, number=0)
    assert encode(sealed) is encode(sealed)
    assert encode(sealed) == encode(replace(request, number=0))
    assert size(sealed) == size(replace(request, number=0))
    # What is not sealed is written as it is now.
    assert encode(request) is not encode(request)


def test_bytes_in_another_form_are_not_kept() -> None:
    data = with_head({"type": "Rows", "more": 1})
    assert encode(decode(data)) == encode(decode(with_head({"type": "Rows"}))) != data


@pytest.mark.parametrize("bad", [0.5, -0.0, 1e300, 2.0**63])
def test_whole_numbers_have_one_form(bad: float) -> None:
    good = encode(CurvatureAt(np.ones(2), np.array([1, 0]), 0))
    assert decode(good).columns.dtype == np.int64  # type: ignore[attr-defined]
    columns = struct.pack("<2d", 1.0, 0.0)
    assert good.count(columns) == 1
    with pytest.raises(FedLassoError, match="malformed message: columns is not whole"):
        decode(good.replace(columns, struct.pack("<2d", 1.0, bad)))


@pytest.mark.parametrize("bad", [-1, 2, 2**62])
def test_a_flag_is_zero_or_one(bad: int) -> None:
    good = encode(CurvatureAt(np.ones(2), np.array([1]), 0, alone=True))
    assert decode(good).alone is True  # type: ignore[attr-defined]
    with pytest.raises(FedLassoError, match="malformed message: alone is not 0 or 1"):
        decode(good[:-8] + struct.pack("<q", bad))


def with_head(head: Any, payload: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return struct.pack("<3sI", b"FL1", len(text)) + text + payload


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"FL1",
        b"XX1" + bytes(4),
        b"FL1\xff\xff\xff\xff",
        with_head([]),
        with_head({"type": "Nobody"}),
        with_head({"type": "FitAt"}),
        with_head({"type": "FitAt", "shapes": [[-1]]}),
        with_head({"type": "FitAt", "shapes": [[10**12, 10**12]]}),
        with_head({"type": "FitAt", "shapes": [["3"]]}),
        with_head({"type": "FitAt", "shapes": [[1]]}, bytes(16)),
        with_head({"type": "FitAt", "shapes": [[1]], "to": "a"}, bytes(8)),
        with_head({"type": "FitSums", "shapes": [[0]], "steps": -1}, bytes(24)),
    ],
)
def test_malformed_bytes_are_one_clear_error(data: bytes) -> None:
    with pytest.raises(FedLassoError, match=r"malformed message|unknown kind"):
        decode(data)


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_bytes_never_crash(data: st.DataObject) -> None:
    good = encode(LocalSweeps(np.ones((3, 2)), 0.5, 2))
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    with contextlib.suppress(FedLassoError):
        decode(bytes(damaged[:cut]))


def test_decoded_arrays_cannot_be_written_to() -> None:
    request = decode(encode(ValidationErrors(np.ones((2, 1)))))
    assert isinstance(request, ValidationErrors)
    with pytest.raises(ValueError, match="read-only"):
        request.candidates[0, 0] = 2.0


def test_a_message_shows_its_own_bytes_and_declares_no_more_than_it_holds() -> None:
    data = encode(FitAt(np.arange(3.0)))
    request = decode(data)
    assert isinstance(request, FitAt)
    assert np.shares_memory(request.b, np.frombuffer(data, np.uint8))
    for shape in ([4], [10**12], [2**62, 4], [2**31, 2**31]):
        vast = with_head({"type": "FitAt", "shapes": [shape]}, bytes(24))
        with pytest.raises(FedLassoError, match="malformed message"):
            decode(vast)


@pytest.mark.full
def test_whoever_imports_the_package_knows_every_message() -> None:
    reported = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL], capture_output=True, text=True
    )
    # The study's own questions, which no policy allows, are known where a study runs.
    own = ["OwnFit", "OwnSweeps"]
    assert reported.stdout.strip() == f"{own} {len(own_messages()) - len(own)}", reported.stderr
