"""`qrmax table`: results as the paper prints them, the paper's numbers beside ours."""

from __future__ import annotations

import click

from qrmax.cli.studies import study_argument


@click.command()
@study_argument
def table(study: str) -> None:
    """Later."""
    click.echo(study)
