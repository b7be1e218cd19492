"""Scalars of TensorBoard's event files, read without TensorBoard.

An event file is a sequence of records: the length of the data (8 bytes), its checksum (4), the
data, their checksum (4). Checksums are CRC-32C, masked. The data are a protocol buffer `Event`, of
which the step (field 2) and the summary (field 5) matter; a summary is a list of values (field 1)
with a tag (1) and a number: `simple_value` (2), or a tensor (8) with one `float_val` (5) or 4 bytes
of `tensor_content` (4).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from qrmax.errors import StudyError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_CASTAGNOLI = 0x82F63B78
_MASK = 0xA282EAD8


class Scalar(NamedTuple):
    """One logged value."""

    tag: str
    step: int
    value: float


def read_scalars(path: str | os.PathLike[str]) -> list[Scalar]:
    """Read all scalars of an event file, in the order in which they were logged.

    A file that ends in the middle of a record, as that of a process that was killed, is read up to
    that record; one whose checksum does not match raises a `StudyError`.
    """
    data = Path(path).read_bytes()
    return [scalar for event in _records(data, str(path)) for scalar in _scalars(event)]


def _records(data: bytes, name: str) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if struct.unpack_from("<I", data, at + 8)[0] != _masked_crc(data[at : at + 8]):
            raise StudyError(f"{name}: not an event file of TensorBoard, or damaged at byte {at}")
        end = at + 12 + length
        if end + 4 > len(data):
            return
        record = data[at + 12 : end]
        if struct.unpack_from("<I", data, end)[0] != _masked_crc(record):
            raise StudyError(f"{name}: is damaged: the record at byte {at} has another checksum")
        yield record
        at = end + 4


def _scalars(event: bytes) -> Iterator[Scalar]:
    fields = _fields(event)
    step = next((x for number, x in fields if number == 2 and isinstance(x, int)), 0)
    for number, summary in fields:
        if number != 5 or not isinstance(summary, bytes):
            continue
        for _, value in _fields(summary):
            if isinstance(value, bytes) and (found := _scalar(value)):
                yield Scalar(found[0], step, found[1])


def _scalar(value: bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for field, x in _fields(value):
        if field == 1 and isinstance(x, bytes):
            tag = x.decode(errors="replace")
        elif field == 2 and isinstance(x, bytes) and len(x) == 4:
            number = struct.unpack("<f", x)[0]
        elif field == 8 and isinstance(x, bytes):
            tensor = [y for kind, y in _fields(x) if kind in (4, 5) and isinstance(y, bytes)]
            number = struct.unpack("<f", tensor[0])[0] if tensor and len(tensor[0]) == 4 else None
    return None if number is None else (tag, float(number))


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: numbers and contents."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            kind, size = key & 7, {_FIXED64: 8, _FIXED32: 4}.get(key & 7, 0)
            if kind == _VARINT:
                number, at = _varint(data, at)
                found.append((key >> 3, number))
                continue
            if kind == _BYTES:
                size, at = _varint(data, at)
            elif not size:
                return []
            found.append((key >> 3, data[at : at + size]))
            at += size
    except IndexError:
        return []
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return number, at


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
        table.append(crc)
    return table


_CRC = _table()


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
