"""Named source texts, with errors that point at a line and column.

Maps, tasks and guards are written by hand, so errors show the offending place:

    MapError: my.txt, line 4, column 7: unknown tile 'X'
      4 | . . . X . .|c
                ^
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from qrmax.errors import ParameterError, SourceError, UnknownNameError

AnyError = TypeVar("AnyError", bound=Exception)

MAX_BYTES = 64 * 2**20  # a 4000 x 4000 map; a larger file is hardly text
EXCERPT_WIDTH = 72
LOOP = "it is a symbolic link that leads back to itself"
HERE = Path()


@dataclass(frozen=True, slots=True)
class Source:
    """A named source text.

    >>> raise Source("guard", "coffee & )").error(ValueError, "unexpected ')'", column=10)
    Traceback (most recent call last):
    ...
    ValueError: guard, column 10: unexpected ')'
      coffee & )
               ^
    """

    name: str
    text: str

    @staticmethod
    def read(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Source:
        """Read a UTF-8 file, or raise a `SourceError` that says why not."""
        try:
            problem = _unreadable(Path(path).stat(), max_bytes)
            data = b"" if problem else Path(path).read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if problem:
            raise SourceError(f"{path}: {problem}")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{path}: not UTF-8 text (byte {data[error.start]:#04x} at offset {error.start})"
            ) from error
        if not text.strip():
            raise SourceError(f"{path}: is empty")
        return Source(str(path), text.replace("\r\n", "\n"))

    @staticmethod
    def find(
        spec: str | os.PathLike[str], kind: str, folder: Path, *suffixes: str, beside: Path = HERE
    ) -> Source:
        """Read the built-in file of this name in `folder`, or else the user's file at this path."""
        if not isinstance(spec, str | os.PathLike):
            raise ParameterError(f"{kind} is {spec!r}; allowed: a name or a path")
        for suffix in suffixes:
            if str(spec) in builtin_names(folder, suffix):
                return Source.read(folder / f"{spec}{suffix}")
        if str(spec).endswith(suffixes) or (str(spec) and _exists(beside / spec)):
            return Source.read(beside / spec)
        names = builtin_names(folder, *suffixes)
        hint = f"a file of your own is given by its path, such as my{suffixes[0]}"
        raise UnknownNameError(kind, str(spec), names, hint=hint)

    def lines(self) -> list[str]:
        """The lines of the text, without their line ends."""
        return self.text.split("\n")

    def error(
        self,
        kind: type[AnyError],
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        note: str = "",
    ) -> AnyError:
        """An error with the place (counted from 1), an excerpt and a caret."""
        place = [self.name]
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column}")
        parts = [f"{', '.join(place)}: {message}"]
        if line is not None or column is not None:
            parts.append(self._excerpt(line, column))
        if note:
            parts.append(f"  {note}")
        return kind("\n".join(parts))

    def place(self, offset: int) -> tuple[int | None, int]:
        """The line (None in a text of one line) and the column of an offset, counted from 1."""
        if "\n" not in self.text:
            return None, offset + 1
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def _excerpt(self, line: int | None, column: int | None) -> str:
        shown = self.lines()[(line or 1) - 1]
        cut = 0
        if column is not None and len(shown) > EXCERPT_WIDTH:
            cut = max(0, min(column - EXCERPT_WIDTH // 2, len(shown) - EXCERPT_WIDTH))
        margin = f"  {line} | " if line is not None else "  "
        excerpt = margin + "".join(
            char if char.isprintable() else "?" for char in shown[cut : cut + EXCERPT_WIDTH]
        )
        if column is not None:
            excerpt += "\n" + " " * (len(margin) + column - 1 - cut) + "^"
        return excerpt


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise a `SourceError` if a file cannot be written; call it before the work begins.

    >>> check_output("missing/folder/policy.json")
    Traceback (most recent call last):
    ...
    qrmax.errors.SourceError: missing/folder/policy.json: cannot be written: there is no folder ...
    """
    with _writing(path):
        target = _target(path)
        if not _is_there(target):
            _check_folder(target.parent)
            if not os.access(target.parent, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, f"the folder {target.parent} is read-only")
        elif target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder; needed: the name of a file")
        elif not os.access(target.parent if target.is_file() else target, os.W_OK):
            raise PermissionError(errno.EACCES, f"{target} is read-only")


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically: the old content stays until the new content is complete.

    A symbolic link stays one: its target is written, even if it does not exist yet.
    """
    with _writing(path):
        target = _target(path)
        if _is_there(target) and not target.is_file():
            target.write_bytes(data)  # a device or a pipe; a folder says that it is one
            return
        _check_folder(target.parent)
        unfinished = target.parent / f".qrmax-{os.getpid()}.unfinished"
        try:
            unfinished.write_bytes(data)
            if target.exists():
                unfinished.chmod(target.stat().st_mode)
            unfinished.replace(target)
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors into a `SourceError` that says which file could not be written, and why."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path or 'the empty path'}: cannot be written: {reason}") from error


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that a path resolves to, following links."""
    try:
        return Path(path).resolve()
    except RuntimeError as error:  # raised by some versions of Python
        raise OSError(errno.ELOOP, LOOP) from error


def _is_there(target: Path) -> bool:
    """Whether the file exists; an error if it never can."""
    try:
        target.stat()
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        _check_folder(target.parent)
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, LOOP) from error
        raise
    return True


def _check_folder(folder: Path) -> None:
    """Raise an error that names the part of a path that is missing or not a folder."""
    for part in (*reversed(folder.parents), folder):
        if not part.exists():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {part}")
        if not part.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{part} is not a folder")


def builtin_names(folder: Path, *suffixes: str) -> list[str]:
    """The names of all files below `folder` with these suffixes, without their suffix."""
    return sorted(
        path.relative_to(folder).as_posix().removesuffix(suffix)
        for suffix in suffixes
        for path in folder.rglob(f"*{suffix}")
    )


def _unreadable(status: os.stat_result, max_bytes: int) -> str:
    """The reason why a file cannot be read, or an empty string."""
    if stat.S_ISDIR(status.st_mode):
        return "is a directory; a text file is needed"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file; a text file is needed"
    if status.st_size > max_bytes:
        return f"{status.st_size >> 20} MiB; the largest allowed is {max_bytes >> 20} MiB"
    return ""


def _exists(spec: str | os.PathLike[str]) -> bool:
    try:
        return Path(spec).exists()
    except (OSError, ValueError):  # a name too long for the file system, or one with a NUL
        return False
