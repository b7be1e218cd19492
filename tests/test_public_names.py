import importlib.util

import qrmax

NAMES = """
Agent AgentConfig register_agent
ContinuousEnv ContinuousProblem DFA Edge Evaluation FineSolution GridMap Guard LabelledMDP OfficeEnv
Problem ProblemEnv QRMaxError QRMaxWarning RewardMachine Run Solution StagedSolution Study
TabularMDP TaskWrapper VectorTaskWrapper __version__ check_task compile_formula curves evaluate load
load_map load_model load_study load_task make minigrid patterns results save_model save_task solve
solve_continuous solve_horizon sweep testing train
MapFolder Options World make_continuous register_world
IncrementalPlanner
"""


NEED_EXTRAS = set() if importlib.util.find_spec("stable_baselines3") else {"sb3"}


def test_the_public_names_are_these() -> None:
    assert set(qrmax.__all__) == set(NAMES.split())
    for name in [*NAMES.split(), "sb3"]:
        if name not in NEED_EXTRAS:
            assert getattr(qrmax, name) is not None
        assert name in dir(qrmax)
