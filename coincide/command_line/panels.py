"""Options by the panel of the help in which they stand."""

from __future__ import annotations

from functools import partial

import typer

data = partial(typer.Option, rich_help_panel="Data")
condition = partial(typer.Option, rich_help_panel="Condition")
meaning = partial(typer.Option, rich_help_panel="Meaning")
result = partial(typer.Option, rich_help_panel="Result")
running = partial(typer.Option, rich_help_panel="How it runs")
