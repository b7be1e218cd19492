"""Reward machines with everything in them that a file might get wrong."""

from __future__ import annotations

from hypothesis import strategies as st

from qrmax import Edge, RewardMachine
from qrmax.machines.reward_machine import FAILED
from random_problems import with_chances

QUOTED = '"hot # [coffee]" & !"true" | "\\\\ %% é"'


@st.composite
def machines(draw: st.DrawFn, *, random: bool = True) -> RewardMachine:
    """A machine with odd names, guards that overlap, and perhaps chance."""
    odd = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\r\t\x7f\x00#='))
    of_states = odd.filter(lambda name: name != FAILED)  # which some machines have already
    names = draw(st.lists(of_states, min_size=3, max_size=6, unique=True))
    inner = st.sampled_from(names[:-2])
    guards = st.sampled_from(["a", "a & !b", "!(a | b) & c", "true", "a | b & c", "!!x_1", QUOTED])
    rewards = st.floats(allow_nan=False, allow_infinity=False)
    states = draw(st.none() | st.permutations(names))
    edges = draw(st.lists(st.builds(Edge, inner, guards, st.sampled_from(names), rewards)))
    if random and draw(st.booleans()):
        edges = with_chances(edges, [draw(st.floats(1e-9, 1.0)) for _ in edges])
    return RewardMachine(
        edges,
        initial=draw(inner),
        success=names[-1:],
        failure=draw(st.sampled_from([[], names[-2:-1]])),
        states=states,
        undefined=draw(st.sampled_from(["stay", "fail"])),
        consume_initial=draw(st.booleans()),
        name=draw(odd),
        description=draw(odd),
    )
