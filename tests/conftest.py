"""Settings for every test."""

import os

from hypothesis import HealthCheck, settings

# Kernels compile within a first example, which is no reason to fail for being slow. The examples
# are the same on every machine; the profile "thorough" looks for new ones.
settings.register_profile(
    "qrmax",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("qrmax"), max_examples=2000, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "qrmax"))
