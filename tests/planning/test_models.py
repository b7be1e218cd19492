import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax import make
from qrmax.planning.arrays import IntArray
from qrmax.planning.models import machine_layers, model_of


def test_a_sequence_has_one_layer_for_each_stage_last_first() -> None:
    layers = model_of(make("office/map1/exp4")).layers
    assert [layer.tolist() for layer in layers] == [[3], [2], [1], [0]]


def test_unordered_visits_put_what_leads_to_the_end_first() -> None:
    problem = make("office/map1/exp3")
    names = [problem.machine.states[layer[0]] for layer in model_of(problem).layers]
    assert names[0] == "has_both"
    assert names[-1] == "start"


@given(st.data())
def test_layers_come_after_all_that_they_lead_to(data: st.DataObject) -> None:
    n_q = data.draw(st.integers(1, 6))
    rows = st.lists(st.integers(0, n_q - 1), min_size=2, max_size=2)
    moves: IntArray = np.array(data.draw(st.lists(rows, min_size=n_q, max_size=n_q)), np.int32)
    terminal = np.array(data.draw(st.lists(st.booleans(), min_size=n_q, max_size=n_q)))
    moves[terminal] = np.flatnonzero(terminal)[:, None]
    layers = [set(layer.tolist()) for layer in machine_layers(moves, terminal)]
    assert sorted(q for layer in layers for q in layer) == np.flatnonzero(~terminal).tolist()
    reach = np.eye(n_q, dtype=bool)
    for _ in range(n_q):
        for q in range(n_q):  # the closure, step by step
            reach[q] |= reach[moves[q]].any(axis=0)
    for place, layer in enumerate(layers):
        for q in layer:
            together = {p for p in range(n_q) if reach[q, p] and reach[p, q]}
            assert together == layer
            later = set().union(*layers[place + 1 :])
            assert not any(reach[q, p] for p in later)


@pytest.mark.parametrize("name", ["office/map1/exp1", "office/map2/exp5"])
def test_every_successor_knows_its_predecessors_once(name: str) -> None:
    problem = make(name)
    env = model_of(problem).env
    n_actions, width = env.succ.shape[1:]
    for state in range(problem.n_states):
        found = []
        edge = int(env.head[state])
        while edge >= 0:
            found.append(edge // (n_actions * width))
            edge = int(env.link[edge])
        leads = ((env.succ == state) & (env.prob > 0)).any(axis=(1, 2))
        assert sorted(found) == np.flatnonzero(leads).tolist()
