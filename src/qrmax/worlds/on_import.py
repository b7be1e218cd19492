"""Import one of our modules as soon as another package has been imported, and not before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def after_import(package: str, module: str) -> None:
    """Import `module` now if `package` is imported already, else right after it is."""
    if package in sys.modules:
        importlib.import_module(module)
    else:
        sys.meta_path.insert(0, _Watcher(package, module))


class _Watcher(MetaPathFinder):
    """A finder, first in `sys.meta_path` until `package` has been imported."""

    def __init__(self, package: str, module: str) -> None:
        self.package = package
        self.module = module
        self.looking = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (the signature is importlib's)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname != self.package or self.looking:
            return None
        self.looking = True  # this finder must not answer itself
        spec = find_spec(fullname)
        self.looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _LoadThenImport(spec.loader, self)
        return spec


class _LoadThenImport(Loader):
    """The package's own loader, followed by the import of our module."""

    def __init__(self, loader: Loader, watcher: _Watcher) -> None:
        self.loader = loader
        self.watcher = watcher

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        if self.watcher in sys.meta_path:
            sys.meta_path.remove(self.watcher)
            importlib.import_module(self.watcher.module)

    def __getattr__(self, name: str) -> object:
        return getattr(self.loader, name)  # get_source, get_data: tools ask the loader for them
