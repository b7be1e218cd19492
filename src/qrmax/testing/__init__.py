"""Checks for agents of one's own, to be called from the tests of another project.

from qrmax.testing import check_agent

def test_sarsa_keeps_the_contract() -> None:
    check_agent(Sarsa)
"""

from qrmax.testing.conformance import check_agent as check_agent
from qrmax.testing.conformance import promise_names as promise_names
