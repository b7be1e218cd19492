"""What an import costs, and that Gymnasium learns our worlds: each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_qrmax_loads_nothing_heavy() -> None:
    heavy = "numba matplotlib polars gymnasium numpy scipy click rich IPython"
    code = f"import sys, qrmax; print(sorted({{*'{heavy}'.split()}} & {{*sys.modules}}))"
    assert python(code) == "[]"


@pytest.mark.parametrize(
    "imports",
    [
        "import gymnasium, qrmax",
        "import qrmax, gymnasium",
        "import qrmax; from gymnasium.envs.registration import register; import gymnasium",
        "from qrmax.worlds.gymnasium import OfficeEnv; import gymnasium",
        "import qrmax, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium",
    ],
)
def test_gymnasium_knows_our_worlds_whichever_is_imported_first(imports: str) -> None:
    make = "env = gymnasium.make('qrmax/Office-map1-exp5-v0'); print(env.reset(seed=0)[0]['state'])"
    count = "print(sum(name.startswith('qrmax/') for name in gymnasium.registry))"
    assert python(f"{imports}; {count}; {make}").split() == ["691", "86"]
