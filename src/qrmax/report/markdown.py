"""Tables as Markdown: means, dispersion, and probability of improvement."""

from __future__ import annotations

from collections.abc import Iterator

from qrmax.report.findings import Findings, Improvement
from qrmax.report.layout import Layout
from qrmax.report.table_rows import markdown_head as _head
from qrmax.report.table_rows import markdown_row as _line
from qrmax.report.wording import (
    ABSENT,
    OWN_HEADS,
    counted,
    estimate_text,
    final_heads,
    final_rows,
    heads,
    how_many_are_close,
    made_by,
    own_rows,
    resolution_text,
    rows,
    success_text,
)
from qrmax.studies.study import numbers_as_text

AT_THE_END = (
    "The success rate of the final policy of such a run: mean, minimum and maximum over the runs. "
    "Sampled, with fewer episodes for policies that are clearly bad."
)
SPREAD = (
    "Median and interquartile mean (IQM: the mean of the middle half) over all runs, each with its "
    "95 % bootstrap interval. A run that hit the budget counts as slower than all that did not; ∞ "
    "means that the estimate depends on such runs."
)


OWN = (
    "Learners that plan for another objective than that of the table, evaluated by their own: the "
    "gap of the final policy, and the {unit} to the stopping rule by that objective (runs that met "
    "it in training, which continued to the rule of the table). Means over the runs, with 95 % "
    "bootstrap confidence intervals."
)
FINAL = (
    "The final greedy policy of each run, evaluated {evaluated}: means over the runs, with 95 % "
    "bootstrap confidence intervals."
)
COLUMNS = {
    "gap": "The gap is that to the optimum, as a share of the optimum.",
    "success": "Success is the success rate.",
    "return": "The return is undiscounted.",
}
OTHERS = (
    " In parentheses: the tool that made runs which are not ours. Their numbers are those that it "
    "logged, mostly means over training episodes."
)


def page(findings: Findings) -> str:
    """The whole page."""
    layout = findings.layout
    paragraphs = [
        f"# {layout.title}",
        layout.about,
        layout.levels,
        _origin(findings),
        "\n".join(_main_table(findings)) if layout.counts_steps else "",
        "\n".join(_gaps(findings)),
        *_accidents(findings),
        *_own_objectives(findings),
        *_at_the_end(findings),
        *_final_policies(findings),
    ]
    if layout.counts_steps:
        paragraphs += ["## Spread", SPREAD, "\n".join(_spread(findings))]
    if layout.counts_steps and len(layout.labels) > 1:
        paragraphs += ["## Probability of improvement", _odds_explained(findings)]
        paragraphs.append("\n".join(_odds(findings)))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def _origin(findings: Findings) -> str:
    """The provenance and meaning of the numbers."""
    layout, cells = findings.layout, findings.cells.values()
    each = counted(max(cell.expected for cell in cells), "run") + " each"
    if any(cell.n < cell.expected for cell in cells):
        each += ", or n if a cell has fewer"
    parts = [made_by(layout.command, findings.versions, findings.commits)]
    parts += [f"seeds {numbers_as_text(layout.seeds)}"] if layout.seeds else []
    if not layout.counts_steps:
        parts.append(f"training is stopped by its budget alone, {each}")
        return "; ".join(parts) + "."
    parts += [
        f"{layout.unit}: mean ± standard deviation of runs that met the stopping rule, {each}"
    ]
    text = "; ".join(parts) + "."
    if any(cell.summary and cell.summary.censored for cell in cells):
        text += " Runs that hit their budget are not in the mean; `>=` precedes the budget."
    if any(cell.not_run for cell in cells):
        text += f" {early_ends(layout)}"
    return " ".join(filter(None, [text, resolution_text(findings)]))


def early_ends(layout: Layout) -> str:
    """The rules by which the first seeds of a cell may be enough."""
    text = (
        f"give_up_after = {layout.give_up_after}: if the first {layout.give_up_after} seeds of a "
        "cell all hit the budget, the rest are not run, and are in no statistic"
    )
    if layout.agree_within is None:
        return f"{text}."
    return (
        f"{text}; agree_within = {layout.agree_within:g}: nor are they if all of these meet the "
        f"rule, with steps that differ by at most {100 * layout.agree_within:g} % of the smallest."
    )


def _main_table(findings: Findings) -> Iterator[str]:
    layout = findings.layout
    whose = layout.has_reference  # else all numbers are ours
    yield from _head(["problem", *[""] * whose, *heads(findings)], left=1 + whose)
    for problem in layout.problems:
        name = layout.short_name(problem)
        for row in rows(findings, problem):
            yield _line([name, *[row.name] * whose, *row.cells])
            name = ""
    if last := how_many_are_close(findings):
        yield _line([last.name, *[""] * whose, *last.cells])


def _gaps(findings: Findings) -> Iterator[str]:
    """The cells that lack runs."""
    gaps = []
    for (problem, label), cell in findings.cells.items():
        counts = {"failed": cell.failed, "missing": cell.missing}
        if any(counts.values()):
            why = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
            gaps.append(f"- {findings.layout.short_name(problem)}, {label}: {why}")
    if gaps:
        yield from ["Not all runs are in the table:", "", *gaps]


def _accidents(findings: Findings) -> Iterator[str]:
    """The runs that met a sampled test although their policies are not close to the optimum."""
    if not findings.layout.tests_samples:
        return
    cells = findings.cells.values()
    met = sum(len(cell.steps.reached) for cell in cells if cell.steps)
    off, vain = sum(cell.far_off for cell in cells), sum(cell.in_vain for cell in cells)
    yield (
        f"The test finds no difference; that does not mean that there is none. Of the "
        f"{counted(met, 'run')} that met it, {off:,} have a policy whose exact value is more than "
        f"5 % below the optimum, {vain:,} of them one that never succeeds."
    )


def _own_objectives(findings: Findings) -> Iterator[str]:
    """The learners that plan for another objective than the one they are compared by."""
    if not findings.own:
        return
    yield "## By their own objectives"
    yield OWN.format(unit=findings.layout.unit)
    yield "\n".join([*_head(OWN_HEADS, left=2), *map(_line, own_rows(findings))])


def _at_the_end(findings: Findings) -> Iterator[str]:
    """The final success rates of right-censored runs."""
    layout = findings.layout
    if not layout.shows_success or not any(cell.successes for cell in findings.cells.values()):
        return
    yield "## Success of runs that hit the budget"
    yield AT_THE_END
    lines = [*_head(["problem", *layout.labels], left=1)]
    for problem in layout.problems:
        texts = [success_text(cell.successes) for cell in findings.row(problem)]
        lines.append(_line([layout.short_name(problem), *texts]))
    yield "\n".join(lines)


def _final_policies(findings: Findings) -> Iterator[str]:
    """Success and return of the last policies, those of other tools among them."""
    if not findings.finals:
        return
    yield "## Final policies"
    names = final_heads(findings)
    meanings = [text for column, text in COLUMNS.items() if f"{column} [95 %]" in names]
    text = " ".join([FINAL.format(evaluated=findings.layout.evaluated), *meanings])
    yield text + (OTHERS if findings.layout.others else "")
    yield "\n".join([*_head(names, left=2), *map(_line, final_rows(findings))])
    yield " ".join(_unknown(findings))


def _unknown(findings: Findings) -> Iterator[str]:
    """Notes on tasks without success, and on what other tools have not logged."""
    layout = findings.layout
    ours = [final for final in findings.finals if final.label not in layout.others]
    without = [x for x in ours if x.success is None and (x.gap or x.episode_return)]
    if names := ", ".join(dict.fromkeys(layout.short_name(final.problem) for final in without)):
        yield f"No success rate on {names}: the task has no success state."
    theirs = [final for final in findings.finals if final.label in layout.others]
    for what, name in (("success rate", "success"), ("return", "episode_return")):
        lacking = [
            f"{final.label} on {layout.short_name(final.problem)}"
            for final in theirs
            if getattr(final, name) is None
        ]
        if lacking:
            yield f"No {what} was logged by {', '.join(lacking)}."


def _spread(findings: Findings) -> Iterator[str]:
    layout = findings.layout
    yield from _head(["problem", "learner", "n", "at budget", "median [95 %]", "IQM [95 %]"], 2)
    for problem in layout.problems:
        name = layout.short_name(problem)
        for label, cell in zip(layout.labels, findings.row(problem), strict=True):
            known = cell.summary
            censored = str(known.censored) if known else ABSENT
            median = estimate_text(known.median) if known else ABSENT
            iqm = estimate_text(known.iqm) if known else ABSENT
            yield _line([name, label, str(cell.n), censored, median, iqm])


def _odds_explained(findings: Findings) -> str:
    problems = counted(len(findings.layout.problems), "problem")
    return (
        "The probability that a run of the learner on the left takes fewer "
        f"{findings.layout.unit} than one of the learner on top, averaged over {problems} (or the "
        "number in the cell). Ties count half, and so do two runs that both hit the budget. In "
        "brackets: the 95 % bootstrap interval, with runs resampled within each problem."
    )


def _odds(findings: Findings) -> Iterator[str]:
    labels = findings.layout.labels
    found: dict[tuple[str, str], Improvement | None] = {}
    for i, ours in enumerate(labels):
        for theirs in labels[i + 1 :]:
            found[ours, theirs] = odds = findings.improvement(ours, theirs)
            found[theirs, ours] = odds.reversed() if odds else None
    total = len(findings.layout.problems)
    yield from _head(["", *labels], left=1)
    for ours in labels:
        texts = [
            "" if ours == theirs else _odds_text(found[ours, theirs], total) for theirs in labels
        ]
        yield _line([ours, *texts])


def _odds_text(odds: Improvement | None, total: int) -> str:
    if odds is None:
        return ABSENT
    value, low, high = odds.probability
    text = f"{value:.2f} [{low:.2f} to {high:.2f}]"
    return text if odds.problems == total else f"{text}, {counted(odds.problems, 'problem')}"
