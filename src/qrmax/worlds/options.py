"""The rules that a world can be told."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from qrmax.errors import UnknownNameError


class Options:
    """What the rules of all worlds have in common; each world has a frozen dataclass of its own."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """The options of these names; an unknown one suggests the nearest."""
        for name in options:
            if name not in cls.__slots__:
                raise UnknownNameError("option", name, cls.__slots__)
        return cls(**options)
