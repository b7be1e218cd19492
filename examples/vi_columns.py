"""Fit the discount factor of the paper's value iteration to the success rates of its table 4.

The published rates are those of sampled episodes, 10,000 by the paper's text. For each discount
factor, the optimal policy is evaluated exactly, and chi-squared is the sum of the squared
differences in standard errors of the sampled rates; mean lengths are not in it. The best discount
factor is a fit: it says which policies the published ones resemble, not how they were made.
"""

import qrmax

EPISODES = 10_000
GAMMAS = (0.8, 0.9, 0.92, 0.94, 0.95, 0.96, 0.98, 0.99)


def main() -> None:
    """Show chi-squared by discount factor, then success and mean length at 0.9 and the best one."""
    reference = qrmax.load_study("paper/table4").reference
    names = list(reference)
    published = [reference[name]["optimum: success %"] / 100 for name in names]
    lengths = [reference[name]["optimum: mean length"] for name in names]
    found = {gamma: [optimum(name, gamma) for name in names] for gamma in GAMMAS}
    fits = {
        gamma: chi_squared([one.success for one in ours], published)
        for gamma, ours in found.items()
    }
    print(f"gamma  chi-squared over {len(names)} success rates")
    for gamma, fit in fits.items():
        print(f"{gamma:<5}  {fit:>11.1f}")
    best = min(fits, key=fits.__getitem__)
    print(f"\n{'problem':<18}{'paper':>8}{'gamma 0.9':>11}{f'gamma {best}':>12}")
    for name, theirs, at_09, at_best in zip(names, published, found[0.9], found[best], strict=True):
        print(f"{name:<18}{theirs:>8.2%}{at_09.success:>11.2%}{at_best.success:>12.2%}")
    print("\nmean length of successful episodes")
    for name, length, at_09, at_best in zip(names, lengths, found[0.9], found[best], strict=True):
        print(f"{name:<18}{length:>8.2f}{at_09.mean_length:>11.2f}{at_best.mean_length:>12.2f}")


def optimum(name: str, gamma: float) -> qrmax.Evaluation:
    """The exact evaluation of the policy of the largest discounted value."""
    problem = qrmax.make(name)
    return qrmax.evaluate(problem, qrmax.solve(problem, gamma).policy, gamma)


def chi_squared(ours: list[float], published: list[float]) -> float:
    """The sum of squared differences in standard errors of the sampled rates."""
    return sum(
        (one - other) ** 2 / (one * (1 - one) / EPISODES)
        for one, other in zip(ours, published, strict=True)
    )


if __name__ == "__main__":
    main()
