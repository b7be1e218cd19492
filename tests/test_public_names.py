import qrmax

NAMES = {
    "Edge", "Evaluation", "GridMap", "Guard", "Problem", "QRMaxError", "QRMaxWarning",
    "RewardMachine", "Solution", "TabularMDP", "__version__", "evaluate", "load_map", "load_task",
    "make", "save_task", "solve",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(qrmax.__all__) == NAMES
    for name in NAMES:
        assert getattr(qrmax, name) is not None
        assert name in dir(qrmax)
